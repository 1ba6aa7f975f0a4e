/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only writer of records. A record is a write-ahead journal: it says what
 * an attachment is about to put where before that is done, so that the
 * next call after a crash can undo all of it, and nothing that is another's.
 */
#ifndef NATRA_STATE_JOURNAL_H
#define NATRA_STATE_JOURNAL_H

#include "state/pin.h"

/* The steps at which a record is written, in the order of an attach. */
enum journal_step {
	/* The generation is about to be pinned: nothing else has been made. */
	JOURNAL_BEGUN,
	/* natra's fq is about to become the root qdisc of an interface. */
	JOURNAL_FQ,
	/* A leg is about to take its slot. */
	JOURNAL_SLOT,
	/* All programs are loaded and about to be attached. Filters are found
	 * by the programs that they run. */
	JOURNAL_PROGRAMS,
	/* Everything is in its place: this generation counts from now on. */
	JOURNAL_COMPLETE,
	/* The slots have other limits than before. This is written behind the
	 * change, which is undone if it cannot be written. */
	JOURNAL_LIMITS,
	/* gso_max_segs has been changed: the limits' record has said that it
	 * was about to be. */
	JOURNAL_GSO,
	JOURNAL_STEP_MAX
};

/* Pins a new generation behind the one of the number `after`, with its record
 * and nothing else. */
int journal_begin(struct natra *n, const struct pin_dir *dir,
		  unsigned int after, const struct record *record,
		  struct pin_gen *ret_gen);

/* Writes the record of a generation as it is in *gen. JOURNAL_COMPLETE marks it
 * complete first. */
int journal_write(struct natra *n, struct pin_gen *gen, enum journal_step step);

#endif
