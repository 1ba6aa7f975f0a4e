/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/classes.h"

#include "policy/classes.h"

void classes_leg_limits(const struct record *record, enum leg leg,
			uint32_t group, const struct natra_policy *policy,
			const struct subnets *subnets,
			struct natra_limits *ret_limits)
{
	const bool is_backstop =
		leg == LEG_INGRESS && record->leg[LEG_HOST].hook;

	for (uint32_t i = 0; i < record_slots(record); i++) {
		ret_limits[i] =
			is_backstop
				? classes_backstop(policy, subnets, i)
				: classes_limits(policy, subnets, i, leg,
						 record_is_paced(record, leg));
		policy_join(&ret_limits[i].member, group, leg == LEG_EGRESS);
	}
}

int classes_pin(struct natra *n, const struct pin_gen *gen,
		const struct subnets *subnets, struct record_classes *classes,
		int trie_fd)
{
	int r;

	if (!subnets_any(subnets))
		return 0;
	r = pin_subnets(n, gen, trie_fd);
	if (r < 0 || !subnets->classes_len)
		return r;
	record_set_classes(classes, subnets);
	return pin_classes(n, gen, classes);
}
