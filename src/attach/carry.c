/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/carry.h"

#include <errno.h>
#include <string.h>

#include "state/debts.h"
#include "state/engine.h"

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

/* The names of the classes of two generations. */
struct names {
	struct record_classes from, to;
};

static int read_names(struct natra *n, const struct pin_gen *gen,
		      struct record_classes *ret)
{
	int r = gen->record.classes_len ? pin_read_classes(n, gen, ret) : 0;

	/* Without its pin no class can be told from another one. */
	return r == -ENOENT ? 0 : r;
}

/* Finds the slot that was the same class's, see debts_hand_over. */
static uint32_t slot_before(const struct names *names,
			    const struct record *from, uint32_t slot)
{
	for (uint32_t i = 1; slot && i < record_slots(from); i++) {
		if (strcmp(names->from.list[i - 1].name,
			   names->to.list[slot - 1].name) == 0)
			return i;
	}
	return slot ? DEBTS_NO_SLOT : 0;
}

static int carry_leg(struct natra *n, const struct record *from,
		     const struct record *to, const struct names *names,
		     enum leg leg)
{
	const enum leg leg_from = leg_before(from, to, leg);
	struct natra_limits old_limits[1 + NATRA_CLASSES_MAX],
		new_limits[1 + NATRA_CLASSES_MAX];
	struct debtors old = {SLOT_INIT, record_slots(from), old_limits},
		       new = {SLOT_INIT, record_slots(to), new_limits};
	uint32_t before[1 + NATRA_CLASSES_MAX];
	int r;

	if (leg_from == LEG_MAX || !from->leg[leg_from].hook ||
	    !to->leg[leg].hook)
		return 0;
	for (uint32_t i = 0; i < new.count; i++)
		before[i] = slot_before(names, from, i);
	r = engine_open_slot(n, &from->slot[leg_from], &old.slot);
	if (r == 0)
		r = engine_open_slot(n, &to->slot[leg], &new.slot);
	if (r == 0)
		r = slot_get_all_limits(n, &old.slot, old.count, old_limits);
	if (r == 0)
		r = slot_get_all_limits(n, &new.slot, new.count, new_limits);
	if (r == 0)
		r = debts_hand_over(n, &old, &new, before);
	slot_close(&old.slot);
	slot_close(&new.slot);
	return r == -ENOENT ? 0 : r;
}

int carry_debts(struct natra *n, const struct pin_gen *from,
		const struct pin_gen *to)
{
	struct names names = {0};
	int r = 0;

	if (!judges(from))
		return 0;
	r = read_names(n, from, &names.from);
	if (r == 0)
		r = read_names(n, to, &names.to);
	for (int i = 0; i < LEG_MAX && r == 0; i++)
		r = carry_leg(n, &from->record, &to->record, &names,
			      (enum leg)i);
	return r;
}
