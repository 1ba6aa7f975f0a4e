/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of two values of a field limits a pod more, and a policy kept below another one. */
#include "policy/fields.h"
#include "policy/policy.h"

#include <string.h>

#define LEAST_BURST_BITS 8

/* Returns what a field is with the defaults filled in. */
static uint64_t effective_of(const struct policy_field *field,
			     const struct natra_policy *policy)
{
	const struct natra_policy effective = policy_effective(policy);

	return policy_field_get(field, &effective);
}

bool policy_field_is_lower(const struct policy_field *field,
			   const struct natra_policy *has, uint64_t wanted)
{
	const uint64_t value = policy_field_get(field, has);

	/* It limits nothing so far. */
	if (!policy_field_counts(field, has))
		return true;
	switch (field->unit) {
	case POLICY_RATE:
		if (policy_field_is_of_group(field))
			return wanted < value;
		return wanted && (!value || wanted < value);
	case POLICY_COUNT:
		if (policy_field_is_count(field))
			return wanted && (!value || wanted < value);
		return policy_field_is_of_group(field) && wanted < value;
	case POLICY_BURST:
	case POLICY_SIZE:
		return wanted && wanted < effective_of(field, has);
	case POLICY_PERCENT:
		return (wanted ? wanted : field->standard) <
		       effective_of(field, has);
	case POLICY_FAST_PASS:
		return wanted > value;
	case POLICY_GROUP:
		return !value;
	default:
		return policy_field_is_of_group(field) && wanted < value;
	}
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

void policy_lower_to(struct natra_policy *policy,
		     const struct natra_policy *ceilings,
		     void (*lowered)(void *arg,
				     const struct policy_field *field,
				     uint64_t asked),
		     void *arg)
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
		uint64_t has = value;

		/* The share of a pod that is strict has a ceiling, also where others may be free. */
		with_rates.fast_pass = field->unit == POLICY_PERCENT
					       ? policy->fast_pass
					       : ceilings->fast_pass;
		/* A burst that follows the rate may be the shorter one by that. */
		if (field->unit == POLICY_BURST && !has)
			has = effective_of(field, policy);
		if (value == ceiling || !is_ceiling(field) ||
		    policy_field_is_lower(
			    field, is_rate ? ceilings : &with_rates, has))
			continue;
		policy_field_set(field, policy, ceiling);
		lowered(arg, field, value);
	}
}

/* Returns what the classes leave of a ceiling; 0: nothing. */
static uint64_t left_by_classes(const struct natra_policy *policy,
				uint64_t ceiling, bool is_ingress)
{
	for (size_t i = 0; i < policy->classes_len; i++) {
		const uint64_t rate =
			is_ingress
				? policy->classes[i].ingress_rate_bits_per_sec
				: policy->classes[i].egress_rate_bits_per_sec;

		/* Peers in a class without a rate are not limited at all. */
		if (!rate || rate >= ceiling)
			return 0;
		ceiling -= rate;
	}
	return ceiling;
}

/* A burst is that of each class and of the rest: all of them have together what the ceiling has.
 * A burst that the policy leaves to the rate stays so, unless the ceiling names one. */
static void share_bursts(struct natra_policy *policy,
			 const struct natra_policy *ceilings)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];
		const uint64_t value = policy_field_get(field, policy);
		const uint64_t given = policy_field_get(field, ceilings);
		uint64_t each;

		if (field->unit != POLICY_BURST)
			continue;
		each = effective_of(field, ceilings);
		each /= policy->classes_len + 1;
		if (each && (value ? value > each : given != 0))
			policy_field_set(field, policy,
					 each > LEAST_BURST_BITS
						 ? each
						 : LEAST_BURST_BITS);
	}
}

bool policy_lower_to_classes(struct natra_policy *policy,
			     const struct natra_policy *ceilings)
{
	const uint64_t in = ceilings->ingress_rate_bits_per_sec;
	const uint64_t out = ceilings->egress_rate_bits_per_sec;
	const uint64_t left_in = left_by_classes(policy, in, true);
	const uint64_t left_out = left_by_classes(policy, out, false);

	if ((in && !left_in) || (out && !left_out)) {
		policy->classes = NULL;
		policy->classes_len = 0;
		return false;
	}
	if (in && policy->ingress_rate_bits_per_sec > left_in)
		policy->ingress_rate_bits_per_sec = left_in;
	if (out && policy->egress_rate_bits_per_sec > left_out)
		policy->egress_rate_bits_per_sec = left_out;
	share_bursts(policy, ceilings);
	return true;
}
