/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/carry.h"

#include <errno.h>

#include "state/engine.h"
#include "state/slot.h"

/* Into the pod there is one of two legs, or both, which are charged for the same packets. */
static enum leg leg_before(const struct record *record, enum leg leg)
{
	if (leg == LEG_EGRESS || record->leg[leg].hook)
		return leg;
	return leg == LEG_HOST ? LEG_INGRESS : LEG_HOST;
}

static int carry_leg(struct natra *n, const struct record *from,
		     const struct record *to, enum leg leg)
{
	const enum leg before = leg_before(from, leg);
	cleanup_slot struct slot old = SLOT_INIT, new = SLOT_INIT;
	uint32_t slots = record_slots(to);
	int r;

	if (!from->leg[before].hook || !to->leg[leg].hook)
		return 0;
	r = engine_open_slot(n, &from->slot[before], &old);
	if (r == 0)
		r = engine_open_slot(n, &to->slot[leg], &new);
	if (slots > record_slots(from))
		slots = record_slots(from);
	for (uint32_t i = 0; i < slots && r == 0; i++) {
		const struct slot of = slot_of_class(&old, i);
		const struct slot goes_to = slot_of_class(&new, i);

		r = slot_carry_debts(n, &of, &goes_to);
	}
	return r == -ENOENT ? 0 : r;
}

int carry_debts(struct natra *n, const struct pin_gen *from,
		const struct pin_gen *to)
{
	int r = 0;

	for (int i = 0; i < LEG_MAX && r == 0; i++)
		r = carry_leg(n, &from->record, &to->record, (enum leg)i);
	return r;
}
