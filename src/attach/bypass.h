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
	bool has[NATRA_DIRECTION_MAX];
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

/* Adds what passed a leg's programs to what passed those of its direction's other leg. */
void bypass_add(struct bypass *bypass, enum leg leg,
		const struct carried_share *of_leg);

/* Returns the direction that a leg limits, in a group that has a rate, or whose parent has one,
 * in the directions `group_limits`; NATRA_DIRECTION_MAX: it only counts. */
enum natra_direction
bypass_direction(const struct record *record, enum leg leg,
		 const bool group_limits[NATRA_DIRECTION_MAX]);

#endif
