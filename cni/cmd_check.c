/* SPDX-License-Identifier: BSD-2-Clause */
/* CHECK compares the kernel with the limits that were set last, by ADD or since
 * then. STATUS answers whether ADD can work: the runtime asks every few seconds,
 * and an error makes the node unready. */
#include <errno.h>

#include "../src/policy/fields.h"
#include "command.h"
#include "groups.h"
#include "wanted.h"

/* Returns whether "onError": "continue" let ADD go on without limits: there is
 * a record of it, or this node cannot even store one. */
static bool starts_unshaped(struct call *call, int r)
{
	struct natra_info info = NATRA_INIT(info);

	if (r == -ENOENT)
		return natra_status(call->n) < 0;
	return natra_query(call->n, call->id, &info) == 0 && info.unshaped;
}

/* Returns whether ADD would give the pod rates or classes of its own, which it asks for or its namespace
 * has. A group counts only if the configuration makes it: another one may be younger than the pod. */
static bool would_be_limited(struct call *call, const struct settings *settings)
{
	cleanup_settings struct settings wanted = {0};
	/* ADD has said what is wrong. */
	struct log log = LOG_INIT;
	struct failure failure;

	return (settings->allowed_len || call->namespaces) &&
	       wanted_read(&wanted, call->conf.json, &call->asker, call->n,
			   &log, &failure) == 0 &&
	       policy_has_rates(&wanted.policy);
}

/* Returns whether the pod is limited, or has to be, although the keys and the runtime give it no rate.
 * Its limits may also have been set since it was made. */
static bool is_limited_without_rate(struct call *call,
				    const struct settings *settings)
{
	struct natra_info info = NATRA_INIT(info);
	int r;

	if (!call_make_id(call))
		return false;
	r = natra_query(call->n, call->id, &info);
	if (r == -ENOENT)
		return would_be_limited(call, settings);
	/* natra_query tells how many classes there are, and not which, so that
	 * policy_has_limits does not see them. */
	return r == 0 &&
	       (info.policy.classes_len || policy_has_limits(&info.policy));
}

/* Returns whether the pod's group, which the configuration makes, has to limit it. With
 * "onError": "continue" ADD may have left it out of the group. */
static bool is_limited_by_group(const struct call *call,
				const struct settings *settings)
{
	return !settings->continue_on_error &&
	       groups_make(settings, &call->asker);
}

static int read_keys(struct call *call, struct settings *settings)
{
	int r = call_read_asker(call);

	return r ? r
		 : wanted_read_keys(settings, call->conf.json, &call->asker,
				    call->n, &call->failure);
}

int cmd_check(struct call *call)
{
	cleanup_settings struct settings settings = {0};
	int r = read_keys(call, &settings);

	if (r)
		return r;
	call->outcome = "nothing to limit";
	/* Other annotations change how a limit is kept, not whether there is one. */
	if (!policy_has_rates(&settings.policy) &&
	    !is_limited_by_group(call, &settings) &&
	    !is_limited_without_rate(call, &settings))
		return 0;
	if (!call_make_id(call))
		return failure_set(&call->failure, CNI_DIFFERS,
				   "'%s' is too long to be attached", call->id);
	call->outcome = "as it was set";
	r = natra_check(call->n, call->id, NULL);
	if (r == 0)
		return 0;
	(void)failure_of_natra(&call->failure, call->n, r, CNI_DIFFERS);
	if (!settings.continue_on_error || !starts_unshaped(call, r))
		return (int)call->failure.code;
	log_add(&call->facts, "error", call->failure.msg);
	call->level = NATRA_LOG_WARN;
	call->outcome = "not shaped, the pod runs without limits";
	return 0;
}

int cmd_status(struct call *call)
{
	cleanup_settings struct settings settings = {0};
	/* A wrong key in the configuration would make each ADD fail. */
	int r = read_keys(call, &settings);

	/* So would a file of namespaces that cannot be read. */
	if (r == 0 && !settings.continue_on_error)
		r = settings_read_namespace(&settings, &call->asker,
					    &call->failure);
	if (r)
		return r;
	if (natra_status(call->n) < 0)
		return failure_set(&call->failure, CNI_NOT_AVAILABLE, "%s",
				   natra_error(call->n));
	call->outcome = "ready";
	return 0;
}
