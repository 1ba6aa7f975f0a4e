/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that change what is attached, or compare it with what the
 * caller wants. */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "api/internal.h"
#include "api/structs.h"
#include "attach/attachment.h"
#include "attach/bypass.h"
#include "attach/check.h"
#include "attach/identity.h"
#include "attach/limits.h"
#include "attach/shaper.h"
#include "policy/class_check.h"
#include "policy/fields.h"
#include "util/cleanup.h"

/* How often, and with what pauses, a check looks whether a generation that is replaced goes. */
#define BESIDE_LOOKS 20
#define BESIDE_MS    50

/* Attaches again with the policy on record, because a direction or the build is new. */
static int reattach(struct natra *n, const struct pin_dir *dir,
		    const struct pin_gen *gen,
		    const struct natra_policy *policy,
		    const struct subnets *subnets, bool keeps_half)
{
	const struct record *record = &gen->record;
	struct order order = {
		.id = record->id,
		.network = record->network,
		.label = record->label,
		.policy = *policy,
		.keeps_half = keeps_half,
	};
	cleanup_pin_gen struct pin_gen attached = PIN_GEN_INIT;
	cleanup_close int fd = -1;
	int r;

	r = attachment_open_netns(n, &record->pod, -1, &fd);
	if (r == 0)
		r = scene_look_recorded(n, fd, &record->pod, &order.scene);
	if (r < 0)
		return identity_explain(n, gen, r);
	order.subnets = *subnets;
	r = shaper_attach(n, dir, &order, &attached);
	if (r < 0)
		drop_unused_programs(n);
	return r;
}

static const char *kind_of_group(const struct natra_policy *policy)
{
	return policy->group_is_automatic ? "automatic " : "";
}

/* Refuses a policy for a setting in which it differs from `have`, which is what there is. */
static int refuse_setting(struct natra *n, int r, enum natra_code code,
			  const char *id, const struct policy_field *field,
			  const struct natra_policy *have,
			  const struct natra_policy *want)
{
	const uint64_t there = policy_field_get(field, have);
	const uint64_t asked = policy_field_get(field, want);

	if (field->unit == POLICY_GROUP)
		return with_name(n, code, field->name,
				 refuse(n, r,
					"group: '%s' is in %s'%s', not %s'%s'",
					id, kind_of_group(have), have->group,
					kind_of_group(want), want->group));
	if (policy_field_word(field, asked))
		return with_name(n, code, field->name,
				 refuse(n, r, "%s: '%s' has %s, not %s",
					field->name, id,
					policy_field_word(field, there),
					policy_field_word(field, asked)));
	return with_name(n, code, field->name,
			 refuse(n, r, "%s: '%s' has %" PRIu64 ", not %" PRIu64,
				field->name, id, there, asked));
}

/* Fills in the settings that are fixed while attached, of which a 0 keeps what there
 * is. */
static void keep_fixed(const struct natra_policy *have, struct natra_policy *p)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (field->is_fixed && !policy_field_get(field, p))
			policy_field_set(field, p,
					 policy_field_get(field, have));
	}
}

/* Fills in what is fixed while attached. Returns -EINVAL if the policy has something else
 * there. */
static int merge_fixed(struct natra *n, const struct record *record,
		       struct natra_policy *p)
{
	const struct natra_policy have = record_get_policy(record);
	const struct policy_field *field;

	keep_fixed(&have, p);
	field = policy_difference(&have, p, true);
	if (field)
		return refuse_setting(n, -EINVAL, NATRA_CODE_FIXED, record->id,
				      field, &have, p);
	return 0;
}

static int refuse_unshaped(struct natra *n, int r, const struct record *record)
{
	return with_code(n, NATRA_CODE_UNSHAPED,
			 refuse(n, r, "'%s' runs without its limits: %s",
				record->id, record->reason));
}

/* Locks an attachment whose limits are to be changed. */
static int lock_limits(struct natra *n, const char *id, struct pin_dir *ret_dir,
		       struct pin_gen *ret_gen)
{
	int r = attachment_lock(n, id, ret_dir, ret_gen);

	/* The policy on record cannot be read, so the caller has to give all of it. */
	if (r == -ESTALE)
		return refuse(n, r, "%s: attach it again", last_error(n));
	if (r == 0 && ret_gen->record.unshaped)
		return refuse_unshaped(n, -EOPNOTSUPP, &ret_gen->record);
	return r;
}

static int refuse_interrupted(struct natra *n, const char *id)
{
	return refuse(
		n, -EUCLEAN,
		"a change of the classes or the subnets of '%s' was interrupted",
		id);
}

/* Returns whether lists stay that a killed process has half changed, because the policy has not all
 * of them. natra_check then goes on saying that the change was interrupted. */
static bool keeps_half(const struct record *record, const struct subnets *given)
{
	const bool has_subnets = given->kind || !record->subnets;
	const bool has_classes = given->classes_len || given->without_classes ||
				 !record->classes_len;

	return record->is_changing && !(has_subnets && has_classes);
}

static int refuse_gone(struct natra *n, const struct pin_gen *gen)
{
	int r = check_exists(n, gen);

	if (r == 0)
		return identity_explain(
			n, gen,
			refuse(n, -ENODEV, "interface '%s' of '%s' is gone",
			       gen->record.pod.ifname, gen->record.id));
	return r < 0 ? r : 0;
}

/* Merges the lists that a policy has with those on record, which stay in place of those
 * that it has not. The policy may say how long the latter are, and be wrong: another
 * process may have changed them since. */
static int merge_lists(struct natra *n, const struct subnets *given,
		       const struct subnets *pinned, struct natra_policy *p,
		       struct subnets *ret_merged)
{
	const size_t shaped = p->shaped_subnets_len;
	const size_t unshaped = p->unshaped_subnets_len;
	struct natra_policy have;

	subnets_set_lengths(pinned, &have);
	if (!given->kind && (shaped || unshaped) &&
	    (shaped != have.shaped_subnets_len ||
	     unshaped != have.unshaped_subnets_len))
		return refuse(n, -EINVAL,
			      "%s_subnets: there are not %zu to be kept",
			      shaped ? "shaped" : "unshaped",
			      shaped ? shaped : unshaped);
	if (!given->classes_len && p->classes_len &&
	    p->classes_len != pinned->classes_len)
		return refuse(n, -EINVAL, "classes: there are %zu, not %zu",
			      pinned->classes_len, p->classes_len);
	*ret_merged = subnets_merge(given, pinned);
	subnets_set_lengths(ret_merged, p);
	p->classes_len = ret_merged->classes_len;
	return with_field(
		n, subnets_check(ret_merged, error_room(n), HANDLE_ERROR_MAX));
}

static int change(struct natra *n, const struct pin_dir *dir,
		  struct pin_gen *gen, const struct natra_policy *policy,
		  const struct subnets *from, const struct subnets *to,
		  bool half)
{
	if (!limits_cover(&gen->record, from, policy, to) ||
	    !subnets_same_shape(from, to))
		return reattach(n, dir, gen, policy, to, half);
	return limits_set(n, gen, policy, to, half, -1);
}

int natra_configure(struct natra *n, const char *id,
		    const struct natra_policy *policy)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets given = {0};
	cleanup_subnets struct subnets pinned = {0};
	struct subnets merged; /* its lists are those of the others */
	struct natra_group_info automatic;
	struct natra_policy p;
	bool half = false;
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = policy_in(n, policy, &p, &automatic, &given);
	if (r == 0)
		r = lock_limits(n, id, &dir, &gen);
	if (r == 0)
		r = attachment_read_subnets(n, &gen, &pinned);
	if (r == 0) {
		half = keeps_half(&gen.record, &given);
		r = merge_lists(n, &given, &pinned, &p, &merged);
	}
	/* Both lists together may be more than any policy may have. */
	if (half && r == -EINVAL)
		r = refuse_interrupted(n, id);
	if (r == 0)
		r = merge_fixed(n, &gen.record, &p);
	if (r == 0)
		r = refuse_gone(n, &gen);
	if (r < 0)
		return r;
	r = change(n, &dir, &gen, &p, &pinned, &merged, half);
	if (leave_full_group(n, r, &p))
		r = change(n, &dir, &gen, &p, &pinned, &merged, half);
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
		r = lock_limits(n, id, &dir, &gen);
	if (r == 0)
		r = refuse_gone(n, &gen);
	if (r < 0)
		return r;
	policy = record_get_policy(&gen.record);
	r = attachment_read_subnets(n, &gen, &subnets);
	if (r == 0)
		r = reattach(n, &dir, &gen, &policy, &subnets,
			     gen.record.is_changing);
	return finish(n, r);
}

/* Finds an attachment again, and locks it. A change that goes on has come to its end then, or it was
 * interrupted. */
static int lock_again(struct natra *n, const char *id, struct pin_dir *ret_dir,
		      struct pin_gen *gen)
{
	int r;

	pin_close_gen(gen);
	*gen = (struct pin_gen)PIN_GEN_INIT;
	r = attachment_lock(n, id, ret_dir, gen);
	return r == 0 && gen->record.is_changing ? refuse_interrupted(n, id)
						 : r;
}

/* The record says that a change of classes or subnets goes on, or that it was interrupted: then
 * nobody has the lock any more. */
static int await_change(struct natra *n, const char *id, struct pin_gen *gen)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;

	return lock_again(n, id, &dir, gen);
}

static bool same_list_of_subnets(const struct subnets *a,
				 const struct subnets *b)
{
	struct subnets left = *a, right = *b;

	left.classes_len = right.classes_len = 0;
	return subnets_equal(&left, &right);
}

/* Compares a record with a policy. Returns -EBADE and a code if they differ. */
static int compare(struct natra *n, const struct pin_gen *gen,
		   struct natra_policy *want, const struct subnets *given)
{
	const struct natra_policy have = record_get_policy(&gen->record);
	const char *id = gen->record.id, *class;
	cleanup_subnets struct subnets pinned = {0};
	struct subnets merged; /* its lists are those of the others */
	const struct policy_field *field;
	int r = attachment_read_subnets(n, gen, &pinned);

	if (r < 0)
		return r;
	merged = subnets_merge(given, &pinned);
	keep_fixed(&have, want);
	field = policy_difference(&have, want, false);
	if (field)
		return refuse_setting(n, -EBADE, NATRA_CODE_LIMITS_DIFFER, id,
				      field, &have, want);
	if (have.shaped_subnets_len != want->shaped_subnets_len ||
	    have.unshaped_subnets_len != want->unshaped_subnets_len ||
	    !same_list_of_subnets(&pinned, &merged))
		return with_name(
			n, NATRA_CODE_LIMITS_DIFFER, "subnets",
			refuse(n, -EBADE, "subnets: '%s' has others", id));
	class = subnets_other_class(&pinned, &merged);
	if (class)
		return with_name(n, NATRA_CODE_CLASSES_DIFFER, class,
				 refuse(n, -EBADE, "class %s: '%s' has another",
					class, id));
	if (have.classes_len != want->classes_len)
		return with_name(n, NATRA_CODE_CLASSES_DIFFER, "classes",
				 refuse(n, -EBADE,
					"classes: '%s' has %zu, not %zu", id,
					have.classes_len, want->classes_len));
	return 0;
}

/* Says that the limits differ from the policy, which the caller can set, even if the check
 * has failed with `r` for something else. */
static int compare_after(struct natra *n, int r, const struct pin_gen *gen,
			 struct natra_policy *want, const struct subnets *given)
{
	struct kept_error kept = keep_error(n);
	int difference = compare(n, gen, want, given);

	if (r == 0 || difference == -EBADE)
		return difference;
	restore_error(&kept);
	return r;
}

/* Checks what can be read of a foreign attachment: nobody but natra of its ABI knows
 * whether its limits hold. */
static int check_foreign(struct natra *n, const struct pin_gen *gen)
{
	struct kept_error foreign = keep_error(n);
	int r = check_attached(n, gen, -1);

	if (r < 0)
		return r;
	restore_error(&foreign);
	return -ESTALE;
}

/* Checks an attachment as it is on record, and compares it with `want` if that is not NULL. */
static int check_gen(struct natra *n, const struct pin_gen *gen,
		     const struct natra_policy *want,
		     const struct subnets *subnets)
{
	int r = check_attached(n, gen, -1);

	if (r == 0 && gen->record.unshaped)
		return refuse_unshaped(n, -EBADE, &gen->record);
	if (r == 0)
		r = check_limits(n, gen);
	if (want && (r == 0 || r == -EBADE)) {
		struct natra_policy copy = *want;

		r = compare_after(n, r, gen, &copy, subnets);
	}
	return r;
}

/* A generation of an id beside the one that counts: a process that was killed, or could not remove it,
 * has left it, or somebody is at it. Its programs may judge packets as well, or it has a qdisc only. */
struct beside {
	unsigned int counts;
	unsigned int other; /* 0: there is none */
};

static int note_other(void *arg, struct pin_gen *gen)
{
	struct beside *beside = arg;

	if (gen->kind != RECORD_NONE && gen->number != beside->counts)
		beside->other = gen->number;
	return 0;
}

static int find_beside(struct natra *n, const struct pin_gen *gen,
		       struct beside *ret)
{
	char path[PIN_PATH_MAX];
	int r = pin_dir_path(n, gen->record.id, path);

	*ret = (struct beside){.counts = gen->number};
	return r < 0 ? r : pin_foreach_gen(n, path, note_other, ret);
}

/* Waits a while for what somebody does who replaces a generation, without the lock, for which one who
 * does so all the time would leave no turn. Returns 1 if the other one just stays. */
static int await_replacement(struct natra *n, const struct pin_gen *gen)
{
	const struct timespec pause = {.tv_nsec = BESIDE_MS * 1000000L};
	struct beside first, now;
	int r = find_beside(n, gen, &first);

	for (int i = 0; i < BESIDE_LOOKS && r == 0 && first.other; i++) {
		cleanup_pin_gen struct pin_gen newest = PIN_GEN_INIT;

		(void)nanosleep(&pause, NULL);
		r = pin_find(n, gen->record.id, &newest);
		if (r == 0)
			r = find_beside(n, &newest, &now);
		if (r < 0 || now.counts != first.counts ||
		    now.other != first.other)
			return r == -ENOENT ? 0 : r;
	}
	return r < 0 ? r : first.other != 0;
}

/* An attachment that somebody changes at this moment looks as if something was wrong with it, so
 * natra looks at it once more while nobody can change it. */
static int check_again(struct natra *n, const char *id, struct pin_gen *gen,
		       const struct natra_policy *want,
		       const struct subnets *subnets)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	struct beside beside = {0};
	int r = lock_again(n, id, &dir, gen);

	if (r == 0)
		r = check_gen(n, gen, want, subnets);
	if (r == 0)
		r = find_beside(n, gen, &beside);
	return r == 0 && beside.other
		       ? refuse(n, -EBADE,
				"an earlier change of '%s' has left something beside what counts: natra_gc removes it",
				id)
		       : r;
}

int natra_check(struct natra *n, const char *id,
		const struct natra_policy *policy)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets subnets = {0};
	struct natra_group_info automatic;
	struct natra_policy want;
	int r;

	r = require_id(n, id);
	if (r == 0 && policy)
		r = policy_in(n, policy, &want, &automatic, &subnets);
	if (r == 0)
		r = attachment_find(n, id, &gen);
	if (r == -ESTALE)
		return check_foreign(n, &gen);
	if (r == 0 && gen.record.is_changing)
		r = await_change(n, id, &gen);
	if (r < 0)
		return r;
	r = check_gen(n, &gen, policy ? &want : NULL, &subnets);
	if (r == 0)
		r = await_replacement(n, &gen);
	if ((r == 1 || r == -EBADE || r == -ENOENT) && !gen.record.unshaped)
		r = check_again(n, id, &gen, policy ? &want : NULL, &subnets);
	/* Who compares would set the policy again, which is of no use here. */
	if (!policy && r == 0)
		r = bypass_check(n, &gen);
	return finish(n, r);
}
