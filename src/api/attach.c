/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that make a record: natra_attach, and natra_record_unshaped,
 * which records that there are no limits. */
#include <errno.h>
#include <string.h>

#include "api/admission.h"
#include "api/internal.h"
#include "api/structs.h"
#include "attach/leftovers.h"
#include "attach/shaper.h"
#include "attach/unshaped.h"
#include "kernel/feature.h"
#include "policy/classes.h"
#include "policy/fields.h"
#include "state/engine.h"
#include "state/group_map.h"
#include "util/str.h"

void drop_unused_programs(struct natra *n)
{
	KEEP_ERROR_SCOPE(n);

	if (n->keep_programs)
		return;
	if (engine_sweep(n) < 0)
		log_line(n, NATRA_LOG_WARN, "unused programs stay: %s",
			 last_error(n));
}

static int warn_before_ours(void *arg, const struct natra_neighbour *entry)
{
	if (entry->is_before_ours)
		log_line(
			arg, NATRA_LOG_WARN,
			"program %u '%s' on the %s %s of '%s' runs before natra: what it accepts or redirects is not limited",
			entry->prog_id, entry->prog_name, entry->hook,
			entry->hook_is_ingress ? "ingress" : "egress",
			entry->ifname);
	return 0;
}

/* Logs whose limits hold beside natra's, and which programs run before
 * natra's. */
static void warn_of_others(struct natra *n, const struct order *order,
			   const struct record *record)
{
	leftovers_warn(n, &order->scene.pod, order->scene.pod_fd);
	if (order->scene.others || record->host.ifindex)
		(void)natra_foreach_neighbour(n, order->id, warn_before_ours,
					      n);
}

bool leave_full_group(struct natra *n, int r, struct natra_policy *policy)
{
	const struct natra_group_info *group = policy->automatic_group;

	if (r != -EUSERS || !group)
		return false;
	log_line(n, NATRA_LOG_WARN,
		 "%s: without it, the group's rates are limits of its own",
		 last_error(n));
	policy_leave_group(policy, group);
	return true;
}

static int check_limits_anything(struct natra *n, const struct order *order)
{
	if (classes_limit(&order->policy, &order->subnets, false) ||
	    classes_limit(&order->policy, &order->subnets, true))
		return 0;
	return refuse(
		n, -EINVAL,
		"ingress_rate_bits_per_sec, egress_rate_bits_per_sec, group: at least one is needed");
}

int natra_attach(struct natra *n, const struct natra_target *target,
		 const struct natra_policy *policy, struct natra_info *ret_info)
{
	cleanup_admission struct admission a = ADMISSION_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_info info;
	int r;

	if (!begin_call(n))
		return -EINVAL;
	r = admission_read(n, target, policy, &a);
	if (r == 0)
		r = check_limits_anything(n, &a.order);
	if (r == 0 && ret_info)
		r = struct_out_check(n, "ret_info", ret_info, EXTENT_INFO);
	if (r < 0)
		return r;
	r = admission_lock(n, &a);
	if (r < 0)
		return feature_blame(n, r);
	r = shaper_attach(n, &a.dir, &a.order, &gen);
	if (leave_full_group(n, r, &a.order.policy))
		r = shaper_attach(n, &a.dir, &a.order, &gen);
	if (r < 0) {
		pin_dir_remove(&a.dir); /* the kernel refuses if it is in use */
		drop_unused_programs(n);
		return feature_blame(n, r);
	}
	if (n->log_fn)
		warn_of_others(n, &a.order, &gen.record);
	if (!ret_info)
		return finish(n, 0);
	info_of(&gen, &info);
	info.program_is_current = info.upgrade_is_in_place = true;
	return finish(n,
		      struct_out(n, "ret_info", ret_info, EXTENT_INFO, &info));
}

/* Detaches what has just been attached to load its programs. The locks are waited for even if the
 * caller's program is to end: an attachment that stays is not what it asked for. */
static int detach_loaded(struct natra *n, const struct natra_target *target)
{
	const natra_cancelled_fn asked = n->cancelled_fn;
	int r;

	n->cancelled_fn = NULL;
	r = natra_detach(n, target);
	n->cancelled_fn = asked;
	return r < 0 ? r : 0;
}

int natra_preload(struct natra *n, const struct natra_target *target,
		  const struct natra_policy *policy,
		  struct natra_info *ret_info)
{
	int r;

	if (!n)
		return -EINVAL;
	n->enters_no_group = true;
	r = natra_attach(n, target, policy, ret_info);
	/* Nothing keeps the map of groups until a program has it: the last detach of another process
	 * may have removed it in between. */
	if (r == -ENOENT)
		r = natra_attach(n, target, policy, ret_info);
	n->enters_no_group = false;
	if (r < 0) {
		groups_sweep(n);
		return r;
	}
	return detach_loaded(n, target);
}

int natra_record_unshaped(struct natra *n, const struct natra_target *target,
			  const struct natra_policy *policy, const char *reason)
{
	cleanup_admission struct admission a = ADMISSION_INIT;
	char line[RECORD_REASON_MAX];
	int r;

	if (!n)
		return -EINVAL;
	if (!reason || !reason[0])
		return refuse(n, -EINVAL, "reason: missing");
	/* The reason is copied first of all: it may be the handle's own error
	 * text. */
	(void)str_copy(line, sizeof(line), reason);
	str_one_line(line);
	(void)begin_call(n);
	r = admission_read(n, target, policy, &a);
	if (r < 0)
		return r;
	r = admission_lock(n, &a);
	if (r < 0)
		return feature_blame(n, r);
	r = unshaped_record(n, &a.dir, &a.order, line);
	if (r < 0)
		pin_dir_remove(&a.dir);
	return finish(n, r);
}
