/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/limits.h"

#include <errno.h>
#include <string.h>

#include "attach/attachment.h"
#include "attach/classes.h"
#include "attach/gso.h"
#include "policy/classes.h"
#include "policy/mode.h"
#include "state/debts.h"
#include "state/engine.h"
#include "state/group_set.h"
#include "state/journal.h"
#include "state/subnets_map.h"
#include "util/cleanup.h"

/* Returns whether egress has no departure times only because it had no limit so far, and
 * its program was there to measure connections. */
static bool may_gain_edt(const struct record *record,
			 const struct subnets *subnets)
{
	const struct natra_policy policy = record_get_policy(record);

	return policy.sli == NATRA_SLI_ON && !record->edt &&
	       !classes_limit(&policy, subnets, true) &&
	       policy.edt_pacing != NATRA_EDT_PACING_OFF &&
	       !mode_is_hostside((enum natra_attach_mode)record->mode);
}

/* Returns whether ingress is judged in the pod alone only because it had no limit so far,
 * and its program was there to measure connections. A group keeps it there. */
static bool may_gain_host(const struct record *record,
			  const struct subnets *subnets)
{
	const struct natra_policy policy = record_get_policy(record);

	return policy.sli == NATRA_SLI_ON && !record->leg[LEG_HOST].hook &&
	       !classes_limit(&policy, subnets, false) &&
	       !mode_is_hostside((enum natra_attach_mode)record->mode);
}

bool limits_cover(const struct record *record, const struct subnets *subnets,
		  const struct natra_policy *policy, const struct subnets *to)
{
	bool pace = policy->ingress_mode == NATRA_INGRESS_MODE_PACE;
	bool in = record->leg[pace ? LEG_HOST : LEG_INGRESS].hook &&
		  !may_gain_host(record, subnets);
	bool out =
		record->leg[LEG_EGRESS].hook && !may_gain_edt(record, subnets);
	const struct natra_policy have = record_get_policy(record);

	return !have.group[0] == !policy->group[0] &&
	       (in || !classes_limit(policy, to, false)) &&
	       (out || !classes_limit(policy, to, true));
}

/* The slots of a leg, with the limits of each. */
struct limit_change {
	struct slot slot; /* config_fd -1: this leg is not used */
	struct natra_limits before[1 + NATRA_CLASSES_MAX];
	struct natra_limits after[1 + NATRA_CLASSES_MAX];
};

/* A change of all limits of a generation, and of what its classes are. */
struct changing {
	struct natra *n;
	struct pin_gen *gen;
	uint32_t slots; /* of each leg */
	uint32_t group; /* 0: in none */
	struct limit_change leg[LEG_MAX];
	struct subnets from; /* owned */
	const struct subnets *to;
	struct record_classes classes;
	int trie_fd; /* owned; -1: there are no classes or subnets */
	bool keeps_half;
};

static int write_limits(struct natra *n, const struct slot *slot,
			uint32_t slots, const struct natra_limits *limits)
{
	int r = 0;

	for (uint32_t i = 0; i < slots && r == 0; i++) {
		const struct slot of = slot_of_class(slot, i);

		r = slot_set_limits(n, &of, &limits[i]);
	}
	return r;
}

/* Everything that can be read is read before anything is written. */
static int prepare_leg(struct changing *c, enum leg leg,
		       const struct natra_policy *policy)
{
	const struct record *record = &c->gen->record;
	struct limit_change *change = &c->leg[leg];
	int r;

	if (!record->leg[leg].hook)
		return 0;
	classes_leg_limits(record, leg, c->group, policy, c->to, change->after);
	r = engine_open_slot(c->n, &record->slot[leg], &change->slot);
	if (r == -ENOENT)
		return refuse(c->n, -ENOENT, "the limits of '%s' are gone",
			      record->id);
	if (r < 0)
		return r;
	return slot_get_all_limits(c->n, &change->slot, c->slots,
				   change->before);
}

static int refuse_classes(struct natra *n, const struct record *record)
{
	return refuse(n, -ENOENT, "the classes of '%s' are gone", record->id);
}

static int prepare_classes(struct changing *c)
{
	int r;

	if (!record_has_classes(&c->gen->record))
		return 0;
	r = attachment_read_subnets(c->n, c->gen, &c->from);
	if (r == 0 && c->slots > 1)
		r = pin_read_classes(c->n, c->gen, &c->classes);
	if (r == 0)
		r = pin_open_subnets(c->n, c->gen, &c->trie_fd);
	return r == -ENOENT ? refuse_classes(c->n, &c->gen->record) : r;
}

/* Gives all slots their limits back. */
static int undo_limits(const struct changing *c)
{
	KEEP_ERROR_SCOPE(c->n);
	int r = 0;

	for (int i = 0; i < LEG_MAX; i++) {
		const struct limit_change *change = &c->leg[i];

		if (change->slot.config_fd >= 0 &&
		    write_limits(c->n, &change->slot, c->slots,
				 change->before) < 0)
			r = -1;
	}
	return r;
}

/* Gives the classes their subnets back, and the pin what it says of them. */
static int undo_classes(const struct changing *c,
			const struct record_classes *before)
{
	KEEP_ERROR_SCOPE(c->n);
	int subnets, pinned = 0;

	if (c->trie_fd < 0)
		return 0;
	subnets = subnets_map_change(c->n, c->trie_fd, c->to, &c->from);
	if (c->slots > 1)
		pinned = pin_write_classes(c->n, c->gen, before);
	return subnets < 0 ? subnets : pinned;
}

/* Writes what the classes are. */
static int write_classes(struct changing *c)
{
	int r;

	if (c->trie_fd < 0)
		return 0;
	record_set_classes(&c->classes, c->to);
	for (uint32_t i = 1; i < c->slots; i++) {
		for (int leg = 0; leg < LEG_MAX; leg++)
			c->classes.list[i - 1].limits[leg] =
				c->leg[leg].after[i];
	}
	r = subnets_map_change(c->n, c->trie_fd, &c->from, c->to);
	return r < 0 || c->slots == 1
		       ? r
		       : pin_write_classes(c->n, c->gen, &c->classes);
}

static int write_record(struct changing *c, const struct natra_policy *policy)
{
	struct record *record = &c->gen->record;
	const struct natra_policy fastest = classes_fastest(policy, c->to);

	record_set_policy(record, policy);
	record->group_number = c->group;
	for (int i = 0; i < LEG_MAX; i++)
		record->limits[i] = c->leg[i].after[0];
	gso_plan(record, record, gso_segs(record, &fastest));
	record->is_changing = c->keeps_half;
	record->group_next = 0;
	return journal_write(c->n, c->gen, JOURNAL_LIMITS);
}

/* Returns whether the record says that the change goes on. Several calls change the classes, and a
 * group that slots name must not be taken for empty. */
static bool is_announced(const struct changing *c)
{
	return c->trie_fd >= 0 || c->group != c->gen->record.group_number;
}

static void announce(struct record *record, const struct changing *c)
{
	record->is_changing = c->trie_fd >= 0;
	record->group_next = c->group == record->group_number ? 0 : c->group;
}

static int begin_change(struct changing *c)
{
	if (!is_announced(c))
		return 0;
	announce(&c->gen->record, c);
	return journal_write(c->n, c->gen, JOURNAL_LIMITS);
}

/* Puts the record back as it was. If something else could not be, the change is one that
 * was interrupted. */
static void undo_record(const struct changing *c, const struct record *before,
			bool is_undone)
{
	KEEP_ERROR_SCOPE(c->n);

	c->gen->record = *before;
	if (!is_undone)
		announce(&c->gen->record, c);
	if (is_announced(c))
		(void)journal_write(c->n, c->gen, JOURNAL_LIMITS);
}

static int change_leg(const struct changing *c,
		      const struct limit_change *change)
{
	const struct debtors now = {change->slot, c->slots, change->before};
	int r = c->slots > 1 ? debts_share(c->n, &now, change->after) : 0;

	return r < 0 ? r
		     : write_limits(c->n, &change->slot, c->slots,
				    change->after);
}

/* Writes all limits and classes, or none. */
static int write_changes(struct changing *c, const struct natra_policy *policy)
{
	const struct record_classes classes = c->classes;
	const struct record before = c->gen->record;
	int r = begin_change(c), undone = 0;

	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		if (c->leg[i].slot.config_fd >= 0)
			r = change_leg(c, &c->leg[i]);
	}
	if (r == 0) {
		r = write_classes(c);
		if (r == 0)
			r = write_record(c, policy);
		if (r < 0)
			undone = undo_classes(c, &classes);
	}
	if (r < 0) {
		if (undo_limits(c) < 0)
			undone = -1;
		undo_record(c, &before, undone == 0);
	}
	return r;
}

int limits_set(struct natra *n, struct pin_gen *gen,
	       const struct natra_policy *policy, const struct subnets *subnets,
	       bool keeps_half, int hint_fd)
{
	struct changing c = {
		.n = n,
		.gen = gen,
		.slots = record_slots(&gen->record),
		.leg = {{.slot = SLOT_INIT},
			{.slot = SLOT_INIT},
			{.slot = SLOT_INIT}},
		.to = subnets,
		.trie_fd = -1,
		.keeps_half = keeps_half,
	};
	const struct record before = gen->record;
	struct groups groups = GROUPS_INIT;
	int r;

	/* The record has room for one value that an interrupted change has left. */
	gso_settle(n, gen, hint_fd);
	r = group_enter(n, gen->record.id, gen->record.label, policy, &groups,
			&c.group);
	if (r == 0)
		r = prepare_classes(&c);

	for (int i = 0; i < LEG_MAX && r == 0; i++)
		r = prepare_leg(&c, (enum leg)i, policy);
	if (r == 0)
		r = write_changes(&c, policy);
	for (int i = 0; i < LEG_MAX; i++)
		slot_close(&c.leg[i].slot);
	groups_close(&groups);
	/* In the pod's namespace, for which other members of groups do not wait. */
	if (r == 0)
		gso_settle(n, gen, hint_fd);
	if (r == 0)
		groups_left(n, &before, c.group);
	else if (policy->automatic_group)
		groups_sweep(n);
	subnets_free(&c.from);
	cleanup_closep(&c.trie_fd);
	return r;
}

/* Gives a slot limits, unless it has them. */
static int give_slot(struct natra *n, const struct slot *slot,
		     const struct natra_limits *limits)
{
	struct natra_limits have;
	int r = slot_get_limits(n, slot, &have);

	if (r < 0 || memcmp(&have, limits, sizeof(have)) == 0)
		return r;
	return slot_set_limits(n, slot, limits);
}

static int give_leg(struct natra *n, const struct record *record,
		    const struct record_classes *classes, enum leg leg,
		    bool lifted)
{
	static const struct natra_limits none = {0};
	cleanup_slot struct slot slot = SLOT_INIT;
	int r = engine_open_slot(n, &record->slot[leg], &slot);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	for (uint32_t i = 0; i < record_slots(record) && r == 0; i++) {
		const struct slot of = slot_of_class(&slot, i);
		const struct natra_limits *limits =
			record_limits(record, classes, i, leg);

		r = give_slot(n, &of, lifted ? &none : limits);
	}
	return r;
}

static int give_legs(struct natra *n, const struct pin_gen *gen,
		     const bool lifted[LEG_MAX])
{
	const struct record *record = &gen->record;
	struct record_classes classes = {0};
	int r = record_slots(record) > 1 ? pin_read_classes(n, gen, &classes)
					 : 0;

	if (r == -ENOENT)
		return refuse_classes(n, record);
	if (r < 0)
		return r;
	for (int i = 0; i < LEG_MAX; i++) {
		const int of = record->leg[i].hook
				       ? give_leg(n, record, &classes,
						  (enum leg)i, lifted[i])
				       : 0;

		r = r < 0 ? r : of;
	}
	return r;
}

int limits_lift(struct natra *n, const struct pin_gen *gen,
		const bool lifted[LEG_MAX], struct pin_dir *ret_lifting)
{
	int r = pin_dir_share(n, gen->path, ret_lifting);

	return r < 0 ? r : give_legs(n, gen, lifted);
}

int limits_restore(struct natra *n, const struct pin_gen *gen)
{
	static const bool none[LEG_MAX] = {false};

	return gen->record.unshaped ? 0 : give_legs(n, gen, none);
}

int limits_repair(struct natra *n, struct pin_gen *gen)
{
	cleanup_pin_dir struct pin_dir lifting = PIN_DIR_INIT;
	int r = pin_dir_try_lock(n, gen->path, &lifting);

	if (r == -EBUSY)
		return 0;
	if (r == 0)
		r = limits_restore(n, gen);
	/* Classes that are half changed may still name it. */
	if (r < 0 || !gen->record.group_next || gen->record.is_changing)
		return r;
	gen->record.group_next = 0;
	return journal_write(n, gen, JOURNAL_LIMITS);
}
