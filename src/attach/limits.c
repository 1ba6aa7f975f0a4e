/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/limits.h"

#include <errno.h>

#include "attach/gso.h"
#include "policy/mode.h"
#include "state/engine.h"
#include "state/groups.h"
#include "state/journal.h"
#include "util/cleanup.h"

/* Returns whether egress has no departure times only because it had no limit so far, and
 * its program was there to measure connections. */
static bool may_gain_edt(const struct record *record)
{
	const struct natra_policy policy = record_get_policy(record);

	return policy.sli == NATRA_SLI_ON && !record->edt &&
	       !policy.egress_rate_bits_per_sec &&
	       policy.edt != NATRA_EDT_OFF &&
	       !mode_is_hostside((enum natra_mode)record->mode);
}

bool limits_cover(const struct record *record,
		  const struct natra_policy *policy)
{
	bool pace = policy->ingress_mode == NATRA_INGRESS_MODE_PACE;
	bool in = record->leg[pace ? LEG_PACE : LEG_INGRESS].hook;
	bool out = record->leg[LEG_EGRESS].hook && !may_gain_edt(record);
	const struct natra_policy have = record_get_policy(record);

	return !have.group == !policy->group &&
	       (in || !policy->ingress_rate_bits_per_sec) &&
	       (out || !policy->egress_rate_bits_per_sec);
}

struct limit_change {
	struct slot slot; /* config_fd -1: this leg is not used */
	struct natra_limits before;
	struct natra_limits after;
};

/* Everything that can be read is read before anything is written. */
static int prepare_change(struct natra *n, const struct pin_gen *gen,
			  enum leg leg, const struct natra_policy *policy,
			  struct limit_change *change)
{
	int r;

	if (!gen->record.leg[leg].hook)
		return 0;
	change->after =
		policy_limits(policy, leg, record_is_paced(&gen->record, leg));
	r = engine_open_slot(n, &gen->record.slot[leg], &change->slot);
	if (r == -ENOENT)
		return refuse(n, -ENOENT, "the limits of '%s' are gone",
			      gen->record.id);
	if (r < 0)
		return r;
	return slot_get_limits(n, &change->slot, &change->before);
}

/* Gives the first `done` legs their limits back. */
static void undo_changes(struct natra *n, const struct limit_change *changes,
			 int done)
{
	KEEP_ERROR_SCOPE(n);

	while (done-- > 0) {
		if (changes[done].slot.config_fd >= 0)
			(void)slot_set_limits(n, &changes[done].slot,
					      &changes[done].before);
	}
}

/* Writes all limits, or none. */
static int write_changes(struct natra *n, struct pin_gen *gen,
			 const struct limit_change *changes,
			 const struct natra_policy *policy)
{
	struct record before = gen->record;
	int done = 0;
	int r = 0;

	for (; done < LEG_MAX && r == 0; done++) {
		if (changes[done].slot.config_fd >= 0)
			r = slot_set_limits(n, &changes[done].slot,
					    &changes[done].after);
	}
	if (r == 0) {
		record_set_policy(&gen->record, policy);
		for (int i = 0; i < LEG_MAX; i++)
			gen->record.limits[i] = changes[i].after;
		gen->record.gso_segs = gso_segs(&gen->record, policy);
		r = journal_write(n, gen, JOURNAL_LIMITS);
	}
	if (r < 0) {
		gen->record = before;
		undo_changes(n, changes, done);
		return r;
	}
	if (gen->record.gso_segs != before.gso_segs)
		gso_change_in(n, &gen->record.pod, before.gso_segs,
			      gen->record.gso_segs);
	return 0;
}

int limits_set(struct natra *n, struct pin_gen *gen,
	       const struct natra_policy *policy)
{
	struct limit_change changes[LEG_MAX] = {
		{.slot = SLOT_INIT},
		{.slot = SLOT_INIT},
		{.slot = SLOT_INIT},
	};
	cleanup_groups struct groups groups = GROUPS_INIT;
	int r = groups_enter(n, gen->record.id, policy, &groups);

	for (int i = 0; i < LEG_MAX && r == 0; i++)
		r = prepare_change(n, gen, (enum leg)i, policy, &changes[i]);
	if (r == 0)
		r = write_changes(n, gen, changes, policy);
	for (int i = 0; i < LEG_MAX; i++)
		slot_close(&changes[i].slot);
	return r;
}
