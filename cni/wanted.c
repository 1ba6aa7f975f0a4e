/* SPDX-License-Identifier: BSD-2-Clause */
#include "wanted.h"

#include <inttypes.h>

#include "../src/policy/fields.h"
#include "../tools/common/group.h"
#include "bandwidth.h"
#include "classes.h"
#include "groups.h"
#include "log.h"

/* Checks the floor beside the rates. If `plain` has another one, the pod has asked for it. */
static int check_floor(const struct natra_policy *p,
		       const struct natra_policy *plain,
		       struct failure *failure)
{
	const uint64_t floor = p->group_floor_bits_per_sec;
	const bool is_asked = floor != plain->group_floor_bits_per_sec;
	const char *wrong =
		group_floor_wrong(floor, p->ingress_rate_bits_per_sec,
				  p->egress_rate_bits_per_sec);

	return wrong ? failure_set(failure, CNI_BAD_CONFIG,
				   "%s: %" PRIu64 " %s",
				   is_asked ? "annotation natra.io/group-floor"
					    : "groupFloor",
				   floor, wrong)
		     : 0;
}

int wanted_read_keys(struct settings *ret, const cJSON *keys,
		     const struct asker *asker, struct natra *n,
		     struct failure *failure)
{
	int r = settings_read(ret, keys, n, failure);

	if (r == 0)
		r = bandwidth_read(ret, keys, asker, n, failure);
	if (r == 0)
		r = groups_read(ret, keys, failure);
	/* A rate of the pod's may be too low for it without a mistake in the keys. */
	if (r == 0 && !asker->bandwidth && !asker->rates)
		r = check_floor(&ret->policy, &ret->policy, failure);
	return r ? r : classes_read(ret, keys, n, failure);
}

static void log_ceiling(void *arg, const struct policy_field *field,
			uint64_t asked)
{
	(void)asked;
	log_write(arg, NATRA_LOG_WARN,
		  "%s: it is over what the configuration has, which stays",
		  policy_field_asked(field));
}

/* Puts what the pod asks for by its annotations into the policy. */
static int annotate(struct settings *s, const struct asker *asker,
		    const struct natra_policy *before, struct natra *n,
		    struct log *log, struct failure *failure)
{
	struct natra_annotations asked = asker->annotations;
	int r;

	asked.sz = sizeof(asked);
	asked.allowed = s->allowed;
	asked.allowed_len = s->allowed_len;
	asked.skip_bad = s->continue_on_error;
	s->plain = s->policy;
	policy_fields_drop_alone(&s->plain);
	r = natra_policy_annotate(n, &s->policy, &asked, &s->asked);
	if (r == 0 && s->precedence == PRECEDENCE_LOWEST)
		policy_lower_to(&s->policy, before, log_ceiling, log);
	return r < 0 ? failure_of_natra(failure, n, r, CNI_BAD_CONFIG) : 0;
}

/* Lowers what the configuration has for all pods, which is none that the pod asks for. A rate of
 * the runtime in the other direction is, so it is lowered with the annotations, and told. */
static void lower_configured(struct settings *s, const cJSON *keys)
{
	const struct natra_policy before = s->policy;

	settings_lower(s, &s->policy);
	s->lowered.text[0] = '\0';
	if (!json_get(keys, "ingressRate")) {
		s->policy.ingress_rate_bits_per_sec =
			before.ingress_rate_bits_per_sec;
		s->policy.ingress_burst_bits = before.ingress_burst_bits;
	}
	if (!json_get(keys, "egressRate")) {
		s->policy.egress_rate_bits_per_sec =
			before.egress_rate_bits_per_sec;
		s->policy.egress_burst_bits = before.egress_burst_bits;
	}
}

/* The agent writes only files that can be read. Another one keeps a pod from starting as other errors
 * of the configuration do, unless pods go on. */
static int read_namespace(struct settings *s, const cJSON *keys,
			  const struct asker *asker, struct log *log,
			  struct failure *failure)
{
	int r = settings_read_namespace(s, asker, failure);

	if (!r && s->precedence != PRECEDENCE_RUNTIME &&
	    (json_get(keys, "ingressRate") || json_get(keys, "egressRate")))
		lower_configured(s, keys);
	if (!r || !s->continue_on_error)
		return r;
	log_write(log, NATRA_LOG_ERROR, "%s: the pod has no maximum",
		  failure->msg);
	s->rule.name = NULL;
	return 0;
}

int wanted_read(struct settings *ret, const cJSON *keys,
		const struct asker *asker, struct natra *n, struct log *log,
		struct failure *failure)
{
	struct natra_policy before;
	int r = wanted_read_keys(ret, keys, asker, n, failure);

	if (r)
		return r;
	before = ret->policy;
	if (asker->on_error != ON_ERROR_AS_SET)
		ret->continue_on_error = asker->on_error == ON_ERROR_CONTINUE;
	r = read_namespace(ret, keys, asker, log, failure);
	if (r)
		return r;
	r = groups_join(ret, asker, n, log, failure);
	if (r == 0)
		r = annotate(ret, asker, &before, n, log, failure);
	groups_keep_rates(ret);
	settings_lower(ret, &ret->policy);
	settings_lower(ret, &ret->plain);
	if (r == 0 && ret->lowered.text[0])
		log_write(log, NATRA_LOG_WARN, "%s", ret->lowered.text);
	/* Else groups_attach gives the floor up. */
	if (r == 0 && !ret->continue_on_error)
		r = check_floor(&ret->policy, &ret->plain, failure);
	return r;
}
