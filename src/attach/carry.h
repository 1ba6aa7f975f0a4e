/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NATRA_ATTACH_CARRY_H
#define NATRA_ATTACH_CARRY_H

#include "state/pin.h"

/* Returns the owner of the slot whose place that of a new generation's leg takes in a group, 0 if
 * it takes none's. `from` may be NULL. */
uint64_t carry_replaced(const struct pin_gen *from, const struct record *to,
			enum leg leg);

/* Lets a generation owe what the one owes whose place it takes, which still judges packets as
 * well. Whoever may cause an attach would otherwise have a burst for each. */
int carry_debts(struct natra *n, const struct pin_gen *from,
		const struct pin_gen *to);

#endif
