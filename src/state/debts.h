/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Debts that the slots of a leg have, when others take their place or their rates change. Whoever
 * may change a limit must get nothing for the change, and rates move among classes by an edit: a
 * class whose packets go at once, as one that is new would have them, or whose burst is of the rate
 * that it had when it was slow, lets more pass than the sum of the rates. So
 *
 * - a slot takes what the one owes that was its class's so far,
 * - one that is new, or gets faster, owes as long as the one that owes longest, and
 * - the leg's own slot takes what those owe whose classes are gone, as their peers do.
 *
 * No slot owes longer for another one than a long packet can make it owe at its own rate.
 * A leg without classes only takes what it owes itself, which is less time at a higher rate.
 */
#ifndef NATRA_STATE_DEBTS_H
#define NATRA_STATE_DEBTS_H

#include "state/slot.h"

/* Slots of a leg that are side by side, and the limits that hold for them. */
struct debtors {
	struct slot slot; /* borrowed; the leg's own, the first */
	uint32_t count;
	const struct natra_limits *limits;
};

/* The slot that there was not. */
#define DEBTS_NO_SLOT UINT32_MAX

/* Lets the slots of a leg owe at least what those owe whose place they take, which still judge
 * packets: `before` has for each of `to` the number of the one of `from` that was its class's,
 * or DEBTS_NO_SLOT. */
int debts_hand_over(struct natra *n, const struct debtors *from,
		    const struct debtors *to, const uint32_t *before);

/* Does the same for slots that stay, before they get the limits `to`. */
int debts_share(struct natra *n, const struct debtors *from,
		const struct natra_limits *to);

#endif
