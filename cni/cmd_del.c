/* SPDX-License-Identifier: BSD-2-Clause */
/* DEL removes the limits. It succeeds if there are none, so that a pod can always be removed. */
#include <errno.h>

#include "command.h"

/* Removes what upstream's plugin gave the pod before natra took its place: the
 * ifb would outlive the pod. */
static void remove_leftovers(struct call *call)
{
	const cJSON *replace = json_get(call->conf.json, "replaceBandwidth");
	struct natra_target target = call_target(call);

	if (!cJSON_IsTrue(replace) || !call->env.netns[0])
		return;
	if (natra_remove_leftovers(call->n, &target) < 0)
		log_write(&call->log, NATRA_LOG_DEBUG, "%s",
			  natra_error(call->n));
}

int cmd_del(struct call *call)
{
	struct natra_target target = NATRA_INIT(target);
	int r;

	call->outcome = "removed";
	if (!call_make_id(call))
		return 0; /* it was never attached */
	target.id = call->id;
	target.netns = call->env.netns[0] ? call->env.netns : NULL;
	r = natra_detach(call->n, &target);
	/* The network namespace only makes the search faster, and no lock is waited for twice. */
	if (r < 0 && r != -EBUSY && target.netns) {
		target.netns = NULL;
		r = natra_detach(call->n, &target);
	}
	/* The pod has to be removed also where somebody holds its netns that natra does not see. */
	if (r == -EBUSY && natra_error_code(call->n) != NATRA_CODE_LOCKED) {
		log_write(&call->log, NATRA_LOG_WARN, "%s",
			  natra_error(call->n));
		call->outcome = "left to gc";
	} else if (r < 0) {
		return failure_of_natra(&call->failure, call->n, r,
					CNI_NOT_REMOVED);
	}
	remove_leftovers(call);
	return env_check_not_own_netns(&call->env, &call->failure);
}
