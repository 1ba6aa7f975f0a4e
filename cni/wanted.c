/* SPDX-License-Identifier: BSD-2-Clause */
#include "wanted.h"

#include "../src/policy/fields.h"
#include "bandwidth.h"
#include "classes.h"
#include "groups.h"
#include "log.h"

int wanted_read_keys(struct settings *ret, const cJSON *keys,
		     const struct asker *asker, struct natra *n,
		     struct failure *failure)
{
	int r = settings_read(ret, keys, n, failure);

	if (r == 0)
		r = bandwidth_read(ret, keys, asker, n, failure);
	if (r == 0)
		r = groups_read(ret, keys, failure);
	return r ? r : classes_read(ret, keys, n, failure);
}

/* Returns whether the field is one of those by which a pod could get more than its rates. */
static bool is_ceiling(const struct policy_field *field)
{
	switch (field->unit) {
	case POLICY_RATE:
	case POLICY_COUNT:
		return !policy_field_is_of_group(field);
	case POLICY_BURST:
	case POLICY_SIZE:
	case POLICY_PERCENT:
	case POLICY_FAST_PASS:
		return true;
	default:
		return false;
	}
}

/* Gives each field that is over the configuration's, or the runtime's, what it had. */
static void keep_ceilings(struct natra_policy *policy,
			  const struct natra_policy *ceilings, struct log *log)
{
	struct natra_policy with_rates = *ceilings;

	/* Limits of packets mean nothing without a rate, which the pod may bring. */
	if (!with_rates.ingress_rate_bits_per_sec)
		with_rates.ingress_rate_bits_per_sec =
			policy->ingress_rate_bits_per_sec;
	if (!with_rates.egress_rate_bits_per_sec)
		with_rates.egress_rate_bits_per_sec =
			policy->egress_rate_bits_per_sec;
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];
		const uint64_t value = policy_field_get(field, policy);
		const uint64_t ceiling = policy_field_get(field, ceilings);
		const bool is_rate = policy_field_is_direction(field);

		if (value == ceiling || !is_ceiling(field) ||
		    policy_field_is_lower(
			    field, is_rate ? ceilings : &with_rates, value))
			continue;
		log_write(
			log, NATRA_LOG_WARN,
			"%s: it is over what the configuration has, which stays",
			policy_field_asked(field));
		policy_field_set(field, policy, ceiling);
	}
}

/* Puts what the pod asks for by its annotations into the policy. */
static int annotate(struct settings *s, const struct asker *asker,
		    struct natra *n, struct log *log, struct failure *failure)
{
	const struct natra_policy before = s->policy;
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
		keep_ceilings(&s->policy, &before, log);
	return r < 0 ? failure_of_natra(failure, n, r, CNI_BAD_CONFIG) : 0;
}

int wanted_read(struct settings *ret, const cJSON *keys,
		const struct asker *asker, struct natra *n, struct log *log,
		struct failure *failure)
{
	int r = wanted_read_keys(ret, keys, asker, n, failure);

	if (r)
		return r;
	if (asker->on_error != ON_ERROR_AS_SET)
		ret->continue_on_error = asker->on_error == ON_ERROR_CONTINUE;
	r = groups_join(ret, asker, n, log, failure);
	if (r == 0)
		r = annotate(ret, asker, n, log, failure);
	groups_keep_rates(ret);
	return r;
}
