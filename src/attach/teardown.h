/* SPDX-License-Identifier: BSD-2-Clause */
/* Undoes what the record of a generation names, whether the attach was finished or
 * not. */
#ifndef NATRA_ATTACH_TEARDOWN_H
#define NATRA_ATTACH_TEARDOWN_H

#include "kernel/netlink.h"
#include "state/pin.h"

/* Notes in a record that is about to be attached, in the place of `before` or of none
 * (NULL), whether the pod's clsact is natra's to remove. */
int teardown_note(struct natra *n, struct netlink *nl,
		  const struct record *before, struct record *record);

/*
 * Detaches the programs of a generation, removes its fq and its clsact and gives
 * the pod back its GSO segments, unless `keep` (which may be NULL) uses the same,
 * or another attachment its fq, and unpins the generation. It is no error if any of this
 * is gone already.
 * hint_fd is a namespace where the pod may be, or -1.
 */
int teardown_gen(struct natra *n, const struct pin_gen *gen,
		 const struct record *keep, int hint_fd);

/* Does the same where something has failed, whose error stays. */
void teardown_undo(struct natra *n, const struct pin_gen *gen,
		   const struct record *keep, int hint_fd);

/* Removes all generations in the locked directory of an id but `except`, which
 * may be NULL. */
int teardown_all(struct natra *n, const struct pin_dir *dir,
		 const struct pin_gen *except, int hint_fd);

#endif
