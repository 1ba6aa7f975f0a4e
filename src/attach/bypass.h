/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out whether packets pass the programs of an attachment, see state/carried.h. */
#ifndef NATRA_ATTACH_BYPASS_H
#define NATRA_ATTACH_BYPASS_H

#include "state/carried.h"
#include "state/pin.h"

/* What passed the programs of each limited direction. Where two programs judge a direction,
 * it is what passed the one that missed less. */
struct bypass {
	struct carried_share share[NATRA_DIRECTION_MAX];
};

/* Begins to compare. That it cannot is no failure of an attach. */
void bypass_begin(struct natra *n, const struct pin_gen *gen, int hint_fd);

/* Compares what the interface has carried with what was judged, unless that was done a moment
 * ago. hint_fd: a namespace where the interface may be, or -1. */
int bypass_look(struct natra *n, const struct pin_gen *gen, int hint_fd,
		struct bypass *ret_bypass);

/* Returns -EBADE, with a text, a code and the direction as its name, if a limit does not hold
 * because packets pass it. */
int bypass_check(struct natra *n, const struct pin_gen *gen);

/* Adds what is on record of a leg to what a direction's other leg has. `is_first`: there is no
 * other yet. */
void bypass_add(struct carried_share *share, const struct carried_share *of_leg,
		bool is_first);

/* Returns the direction that a leg limits; NATRA_DIRECTION_MAX: it only counts. */
enum natra_direction bypass_direction(const struct record *record,
				      enum leg leg);

#endif
