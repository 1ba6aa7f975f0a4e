/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/classes.h"

/* Returns the policy that holds for a class. */
static struct natra_policy policy_of(const struct natra_policy *policy,
				     const struct subnets *subnets,
				     size_t number)
{
	struct natra_policy p = *policy;
	const struct peer_class *class;

	if (!number)
		return p;
	class = &subnets->classes[number - 1];
	p.ingress_rate_bits_per_sec = class->ingress_rate_bits_per_sec;
	p.egress_rate_bits_per_sec = class->egress_rate_bits_per_sec;
	return p;
}

bool classes_limit(const struct natra_policy *policy,
		   const struct subnets *subnets, bool egress)
{
	if (policy->group[0])
		return true;
	for (size_t i = 0; i <= subnets->classes_len; i++) {
		const struct natra_policy p = policy_of(policy, subnets, i);

		if (egress ? p.egress_rate_bits_per_sec
			   : p.ingress_rate_bits_per_sec)
			return true;
	}
	return false;
}

struct natra_policy classes_fastest(const struct natra_policy *policy,
				    const struct subnets *subnets)
{
	struct natra_policy fastest = *policy;

	/* Some peers are exempt. */
	if (subnets->kind)
		fastest.egress_rate_bits_per_sec = 0;
	for (size_t i = 1; i <= subnets->classes_len; i++) {
		const struct natra_policy p = policy_of(policy, subnets, i);
		const uint64_t rate = p.egress_rate_bits_per_sec;

		if (!rate || (fastest.egress_rate_bits_per_sec &&
			      rate > fastest.egress_rate_bits_per_sec))
			fastest.egress_rate_bits_per_sec = rate;
	}
	return fastest;
}

struct natra_limits classes_limits(const struct natra_policy *policy,
				   const struct subnets *subnets, size_t number,
				   enum leg leg, bool paced)
{
	const struct natra_policy fastest = classes_fastest(policy, subnets);
	struct natra_policy p = policy_of(policy, subnets, number);

	/* What is in a class without a rate is exempt from the group as well. */
	if (number && !(leg == LEG_EGRESS ? p.egress_rate_bits_per_sec
					  : p.ingress_rate_bits_per_sec))
		p.group[0] = '\0';
	return policy_limits_of(&p, leg, paced,
				policy_gso_segs(&fastest, true));
}

struct natra_limits classes_backstop(const struct natra_policy *policy,
				     const struct subnets *subnets,
				     size_t number)
{
	const struct natra_policy p = policy_of(policy, subnets, number);

	return policy_backstop(&p);
}
