/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/carry.h"

#include <errno.h>

#include "state/engine.h"
#include "state/slot.h"

/* Returns whether a generation has slots of this build's layout, by which it limits. */
static bool judges(const struct pin_gen *gen)
{
	return gen && gen->kind == RECORD_OWN && !gen->record.unshaped;
}

/* Returns the leg that judges what comes into the pod. If it is not the pod's, that is a
 * backstop. */
static enum leg judge_of(const struct record *record)
{
	return record->leg[LEG_HOST].hook ? LEG_HOST : LEG_INGRESS;
}

/* Returns the leg whose place this one takes, or LEG_MAX. A backstop owes less than the judge
 * does, or it would drop what the judge lets pass, so it takes only that of another one. */
static enum leg leg_before(const struct record *from, const struct record *to,
			   enum leg leg)
{
	if (leg == LEG_EGRESS)
		return leg;
	if (leg == judge_of(to))
		return judge_of(from);
	return judge_of(from) == LEG_HOST ? LEG_INGRESS : LEG_MAX;
}

uint64_t carry_replaced(const struct pin_gen *from, const struct record *to,
			enum leg leg)
{
	enum leg before;

	if (!judges(from) || !to->group_number ||
	    from->record.group_number != to->group_number)
		return 0;
	before = leg_before(&from->record, to, leg);
	return before != LEG_MAX && from->record.leg[before].hook
		       ? from->record.slot[before].owner
		       : 0;
}

static int carry_leg(struct natra *n, const struct record *from,
		     const struct record *to, enum leg leg)
{
	const enum leg before = leg_before(from, to, leg);
	cleanup_slot struct slot old = SLOT_INIT, new = SLOT_INIT;
	uint32_t slots = record_slots(to);
	int r;

	if (before == LEG_MAX || !from->leg[before].hook || !to->leg[leg].hook)
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

	for (int i = 0; i < LEG_MAX && r == 0 && judges(from); i++)
		r = carry_leg(n, &from->record, &to->record, (enum leg)i);
	return r;
}
