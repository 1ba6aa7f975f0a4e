/* SPDX-License-Identifier: BSD-2-Clause */
/* ADD sets the limits of one pod's interface. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../src/policy/environment.h"
#include "../src/policy/fields.h"
#include "../src/policy/mode.h"
#include "../tools/common/hold.h"
#include "../tools/common/interfaces.h"
#include "../tools/common/text.h"
#include "command.h"
#include "groups.h"
#include "io.h"
#include "result.h"
#include "wanted.h"

static void note_limits(struct call *call, const struct natra_info *info)
{
	const struct natra_policy *p = &info->effective;

	log_add(&call->facts, "mode", natra_attach_mode_name(info->mode));
	log_add(&call->facts, "edt", info->edt_active ? "on" : "off");
	log_add(&call->facts, "reason", info->reason);
	log_add_u64(&call->facts, "ingress_bits_per_sec",
		    p->ingress_rate_bits_per_sec);
	log_add_u64(&call->facts, "ingress_burst_bits", p->ingress_burst_bits);
	log_add_u64(&call->facts, "egress_bits_per_sec",
		    p->egress_rate_bits_per_sec);
	log_add_u64(&call->facts, "egress_burst_bits", p->egress_burst_bits);
}

/* A list may make other interfaces, through which the pod's traffic passes beside its
 * limits. Each of those that Multus adds has an ADD of its own. */
static void warn_of_others(struct call *call)
{
	cleanup_text char *names = interfaces_beside(
		json_get(call->conf.json, "prevResult"), call->env.ifname);

	if (names)
		log_write(&call->log, NATRA_LOG_WARN,
			  "the pod has limits at %s, but not at %s",
			  call->env.ifname, names);
}

/* Removes what the bandwidth plugin left. Without this its limits hold beside
 * natra's, and natra_attach warns of them. */
static int replace_leftovers(struct call *call,
			     const struct natra_target *target)
{
	struct natra_leftovers left = NATRA_INIT(left);
	int r;

	/* If the interface cannot be looked at, natra_attach reports it. */
	if (natra_find_leftovers(call->n, target, &left) < 0 ||
	    (!left.limits_ingress && !left.limits_egress))
		return 0;
	r = natra_remove_leftovers(call->n, target);
	if (r == 0)
		log_write(
			&call->log, NATRA_LOG_WARN,
			"removed what the bandwidth plugin left on '%s':%s%s%s",
			left.host_ifname,
			left.is_htb           ? " htb"
			: left.limits_ingress ? " tbf"
					      : "",
			left.limits_egress ? " redirect to " : "",
			left.limits_egress && !left.ifb_ifname[0]
				? "nowhere"
				: left.ifb_ifname);
	return r;
}

/* Records why the pod starts without limits, for `natractl list` and the log. */
static void go_on_unshaped(struct call *call, const struct natra_target *target,
			   const struct natra_policy *policy)
{
	struct natra_policy none = NATRA_INIT(none);
	int r;

	log_add(&call->facts, "error", call->failure.msg);
	r = natra_record_unshaped(call->n, target, policy, call->failure.msg);
	/* The library may have refused the policy itself, which is not recorded then. */
	if (r == -EINVAL)
		r = natra_record_unshaped(call->n, target, &none,
					  call->failure.msg);
	if (r < 0)
		log_write(&call->log, NATRA_LOG_WARN,
			  "the reason cannot be recorded: %s",
			  natra_error(call->n));
	call->level = NATRA_LOG_ERROR;
	call->outcome = "not shaped, the pod starts without limits";
}

/* Removes the attachment, which may be an earlier ADD's with the same id. */
static void remove_attachment(struct call *call)
{
	struct natra_target target = NATRA_INIT(target);

	target.id = call->id;
	if (natra_detach(call->n, &target) < 0)
		log_write(&call->log, NATRA_LOG_WARN, "%s",
			  natra_error(call->n));
}

struct attaching {
	struct call *call;
	const struct natra_target *target;
	struct natra_info *info;
};

/* If its group was all that limited the pod, and has gone, it is not attached. */
static int attach_with(void *arg, const struct natra_policy *policy)
{
	const struct attaching *a = arg;

	if (policy_has_limits(policy))
		return natra_attach(a->call->n, a->target, policy, a->info);
	remove_attachment(a->call);
	return 0;
}

static void log_absence(struct call *call, const struct settings *settings)
{
	if (settings->group_absence[0])
		log_write(&call->log, NATRA_LOG_INFO, "%s",
			  settings->group_absence);
}

/* The failure is set. Returns its code, unless the pod starts all the same. */
static int not_shaped(struct call *call, const struct natra_target *target,
		      const struct settings *settings)
{
	if (!settings->continue_on_error)
		return call->failure.code;
	go_on_unshaped(call, target, &settings->policy);
	return 0;
}

/* Finds out whether the limits hold beside the pod's network. If what was asked for does not,
 * there are no limits to rely on; else the log says so. */
static int check_hold(struct call *call, const struct settings *settings,
		      const struct natra_info *info)
{
	struct hold hold = {.info = info};
	struct hold_loss loss;
	char text[256];

	if (!hold_may_lose(info))
		return 0;
	hold_read_group(&hold, call->n);
	if (natra_foreach_neighbour(call->n, call->id, hold_note, &hold) < 0)
		return 0;
	if (!hold_lost(&hold, &loss)) {
		if (hold.is_shaky)
			log_write(
				&call->log, NATRA_LOG_WARN,
				"attachMode: %s holds beside %s ('%s' on '%s') only while natra-agent runs, which the other modes do without it",
				natra_attach_mode_name(info->mode), hold.owner,
				hold.program, info->host_ifname);
		return 0;
	}
	(void)snprintf(
		text, sizeof(text),
		"%s: %s does not limit %s beside %s ('%s' on '%s'), which %s",
		loss.key, loss.value, loss.lost, hold.owner, hold.program,
		info->host_ifname, loss.holds);
	/* `auto` may come to the host side, but nobody paces who was not asked to. */
	if (settings->continue_on_error ||
	    (mode_is_hostside(info->mode) &&
	     settings->policy.attach_mode == NATRA_ATTACH_MODE_AUTO)) {
		log_write(&call->log, NATRA_LOG_WARN, "%s", text);
		return 0;
	}
	remove_attachment(call);
	return failure_set(&call->failure, CNI_NOT_SHAPED, "%s", text);
}

static int shape(struct call *call, struct settings *settings)
{
	struct natra_target target = call_target(call);
	struct natra_info info = NATRA_INIT(info);
	struct attaching attaching = {call, &target, &info};
	const bool was_absent = settings->group_absence[0];
	char wrong[ENVIRONMENT_ERROR_MAX];
	int r = env_check_netns(&call->env, &call->failure);

	if (r)
		return r;
	if (environment_read(&settings->policy, wrong, sizeof(wrong)) < 0) {
		failure_set(&call->failure, CNI_NOT_SHAPED, "%s", wrong);
		return not_shaped(call, &target, settings);
	}
	r = settings->replace_bandwidth ? replace_leftovers(call, &target) : 0;
	if (r == 0)
		r = groups_attach(settings, call->n, &call->log, attach_with,
				  &attaching);
	if (r < 0) {
		failure_of_natra(&call->failure, call->n, r, CNI_NOT_SHAPED);
		return not_shaped(call, &target, settings);
	}
	if (settings->dropped[0])
		log_write(&call->log, NATRA_LOG_ERROR,
			  "%s: the pod's annotations do not count",
			  settings->dropped);
	/* The group may have gone only now. */
	if (!was_absent)
		log_absence(call, settings);
	if (!policy_has_limits(&settings->policy))
		return 0;
	r = check_hold(call, settings, &info);
	if (r)
		return r;
	call->outcome = "shaped";
	note_limits(call, &info);
	warn_of_others(call);
	return 0;
}

int cmd_add(struct call *call)
{
	cleanup_settings struct settings settings = {0};
	char *result = NULL;
	bool limited, id_fits;
	int r;

	r = env_check_not_own_netns(&call->env, &call->failure);
	if (r == 0)
		r = call_read_asker(call);
	if (r == 0)
		r = wanted_read(&settings, call->conf.json, &call->asker,
				call->n, &call->log, &call->failure);
	/* The result is made before anything is attached, so that after
	 * attaching only writing to stdout can fail. */
	if (r == 0)
		r = result_make(&call->conf, &result, &call->failure);
	if (r)
		return r;
	log_absence(call, &settings);
	limited = policy_has_limits(&settings.policy);
	id_fits = call_make_id(call);
	call->outcome = "nothing to limit";
	if (limited && !id_fits)
		r = failure_set(
			&call->failure, CNI_BAD_ENVIRONMENT,
			"name, CNI_CONTAINERID, CNI_IFNAME: together over %d bytes",
			NATRA_ID_MAX);
	else if (limited)
		r = shape(call, &settings);
	else if (id_fits)
		remove_attachment(call);
	if (r == 0 && io_write_line(STDOUT_FILENO, result) < 0) {
		if (limited)
			remove_attachment(call);
		r = failure_set(&call->failure, CNI_IO,
				"error writing to stdout");
	}
	cJSON_free(result);
	return r;
}
