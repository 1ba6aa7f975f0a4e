/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that change what is attached, or compare it with what the
 * caller wants. */
#include <errno.h>

#include "api/internal.h"
#include "api/structs.h"
#include "attach/attachment.h"
#include "attach/check.h"
#include "attach/limits.h"
#include "attach/shaper.h"
#include "policy/fields.h"
#include "util/cleanup.h"

/* Attaches again with the policy on record, because a direction or the build is new. */
static int reattach(struct natra *n, const struct pin_dir *dir,
		    const struct pin_gen *gen,
		    const struct natra_policy *policy,
		    const struct subnets *subnets)
{
	const struct record *record = &gen->record;
	struct order order = {
		.id = record->id,
		.network = record->network,
		.label = record->label,
		.policy = *policy,
	};
	cleanup_pin_gen struct pin_gen attached = PIN_GEN_INIT;
	cleanup_close int fd = -1;
	int r;

	r = attachment_open_netns(n, &record->pod, -1, &fd);
	if (r == 0)
		r = scene_look_recorded(n, fd, &record->pod, &order.scene);
	if (r < 0)
		return r;
	order.subnets = *subnets;
	r = shaper_attach(n, dir, &order, &attached);
	if (r < 0)
		drop_unused_programs(n);
	return r;
}

/* Fills in the fields that are fixed while attached, of which a 0 keeps what there
 * is. Returns -EINVAL if one of them, or the subnets, differ from `pinned`, which is
 * what there is. Classes may differ. */
static int merge_fixed(struct natra *n, const struct pin_gen *gen,
		       struct natra_policy *p, const struct subnets *subnets,
		       const struct subnets *pinned)
{
	struct natra_policy policy = record_get_policy(&gen->record);
	const struct natra_policy *before = &policy;
	const char *fixed;

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (field->is_fixed && !policy_field_get(field, p))
			policy_field_set(field, p,
					 policy_field_get(field, before));
	}
	fixed = policy_fixed_difference(before, p);
	if (fixed)
		return with_code(
			n, NATRA_CODE_FIXED,
			refuse(n, -EINVAL, "%s: fixed while attached", fixed));
	/* There may be none, or only their number may be given. */
	if (subnets->len && !subnets_equal(pinned, subnets))
		return with_code(
			n, NATRA_CODE_FIXED,
			refuse(n, -EINVAL, "subnets: fixed while attached"));
	return 0;
}

static int refuse_unshaped(struct natra *n, int r, const struct record *record)
{
	return with_code(n, NATRA_CODE_UNSHAPED,
			 refuse(n, r, "'%s' runs without its limits: %s",
				record->id, record->reason));
}

static int refuse_gone(struct natra *n, const struct pin_gen *gen)
{
	int r = check_exists(n, gen);

	if (r == 0)
		return refuse(n, -ENODEV, "interface '%s' of '%s' is gone",
			      gen->record.pod.ifname, gen->record.id);
	return r < 0 ? r : 0;
}

/* Gives a policy without lists the lengths of those on record. */
static void keep_lists(const struct record *record, struct natra_policy *p)
{
	const struct natra_policy before = record_get_policy(record);

	if (p->shaped_subnets_len || p->unshaped_subnets_len || p->classes_len)
		return;
	p->shaped_subnets_len = before.shaped_subnets_len;
	p->unshaped_subnets_len = before.unshaped_subnets_len;
	p->classes_len = before.classes_len;
}

/* Checks a policy with what it has kept. The number of classes may be from before
 * another process has changed them. */
static int check_lists(struct natra *n, const struct record *record,
		       const struct natra_policy *p,
		       const struct subnets *given)
{
	const uint32_t have = record_slots(record) - 1;

	if (!given->classes_len && p->classes_len != have)
		return refuse(n, -EINVAL, "classes: there are %u, not %zu",
			      have, p->classes_len);
	return policy_check(p, error_room(n), HANDLE_ERROR_MAX);
}

int natra_configure(struct natra *n, const char *id,
		    const struct natra_policy *policy)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets given = {0};
	cleanup_subnets struct subnets pinned = {0};
	const struct subnets *subnets;
	struct natra_policy p;
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = policy_in(n, policy, &p, &given);
	if (r == 0)
		r = attachment_lock(n, id, &dir, &gen);
	if (r < 0)
		return r;
	if (gen.record.unshaped)
		return refuse_unshaped(n, -EOPNOTSUPP, &gen.record);
	keep_lists(&gen.record, &p);
	r = check_lists(n, &gen.record, &p, &given);
	if (r == 0)
		r = attachment_read_subnets(n, &gen, &pinned);
	if (r == 0)
		r = merge_fixed(n, &gen, &p, &given, &pinned);
	if (r == 0)
		r = refuse_gone(n, &gen);
	if (r < 0)
		return r;
	subnets = given.classes_len ? &given : &pinned;
	if (!limits_cover(&gen.record, &pinned, &p, subnets) ||
	    !subnets_same_shape(&pinned, subnets))
		r = reattach(n, &dir, &gen, &p, subnets);
	else
		r = limits_set(n, &gen, &p, subnets);
	return finish(n, r);
}

int natra_upgrade(struct natra *n, const char *id)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets subnets = {0};
	struct natra_policy policy;
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = attachment_lock(n, id, &dir, &gen);
	if (r == -ESTALE && gen.abi < NATRA_PIN_ABI)
		return refuse(
			n, r,
			"the limits of '%s' were pinned by ABI %u and cannot be read by this one, %d: attach it again",
			id, gen.abi, NATRA_PIN_ABI);
	if (r < 0)
		return r;
	if (gen.record.unshaped)
		return refuse_unshaped(n, -EOPNOTSUPP, &gen.record);
	r = refuse_gone(n, &gen);
	if (r < 0)
		return r;
	policy = record_get_policy(&gen.record);
	r = attachment_read_subnets(n, &gen, &subnets);
	return finish(n,
		      r < 0 ? r : reattach(n, &dir, &gen, &policy, &subnets));
}

/* The record says that a change of classes goes on, or that it was interrupted: then
 * nobody has the lock any more. */
static int await_change(struct natra *n, const char *id, struct pin_gen *gen)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	int r;

	pin_close_gen(gen);
	*gen = (struct pin_gen)PIN_GEN_INIT;
	r = attachment_lock(n, id, &dir, gen);
	if (r == 0 && gen->record.is_changing)
		r = refuse(n, -EUCLEAN,
			   "a change of the classes of '%s' was interrupted",
			   id);
	return r;
}

int natra_check(struct natra *n, const char *id,
		const struct natra_policy *policy)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets subnets = {0};
	cleanup_subnets struct subnets pinned = {0};
	struct natra_policy have, want;
	int r;

	r = require_id(n, id);
	if (r < 0)
		return r;
	if (policy) {
		r = policy_in(n, policy, &want, &subnets);
		if (r < 0)
			return r;
	}
	r = attachment_find(n, id, &gen);
	if (r == 0 && gen.record.is_changing)
		r = await_change(n, id, &gen);
	if (r == 0)
		r = check_attached(n, &gen, -1);
	if (r == 0 && gen.record.unshaped)
		return refuse_unshaped(n, -EBADE, &gen.record);
	if (r == 0)
		r = check_limits(n, &gen);
	if (r < 0 || !policy)
		return finish(n, r);

	r = attachment_read_subnets(n, &gen, &pinned);
	if (r == 0)
		r = merge_fixed(n, &gen, &want, &subnets, &pinned);
	if (r < 0)
		return r == -EINVAL ? -EBADE : r;
	have = record_get_policy(&gen.record);
	if (!policy_equal(&have, &want) ||
	    (subnets.classes_len && !subnets_equal(&pinned, &subnets)))
		return refuse(n, -EBADE,
			      "'%s' was set to other limits than these", id);
	return finish(n, 0);
}
