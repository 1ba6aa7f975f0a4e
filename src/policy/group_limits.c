/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/group_limits.h"

#include "policy/policy.h"

_Static_assert(NATRA_GROUPS == NATRA_GROUPS_MAX, "one maximum");
_Static_assert(sizeof(((struct natra_group_given *)0)->name) ==
		       NATRA_GROUP_NAME_MAX + 1,
	       "one maximum");

/* Sets from which size on a flow is heavy: less of the group than of its parent may
 * be much. */
static void set_units(struct natra_group_limits *l, uint64_t rate,
		      uint64_t parent_rate)
{
	const uint64_t least = parent_rate && (!rate || parent_rate < rate)
				       ? parent_rate
				       : rate;

	if (!least)
		return;
	l->enter_units =
		policy_units(policy_bytes_in(least, POLICY_THRESHOLD_NS));
	l->leave_units = policy_leave_units(l->enter_units);
}

struct natra_group_limits group_limits(const struct natra_group_given *given,
				       const struct natra_group_given *parent,
				       bool egress)
{
	const uint64_t rate = given->rate_bits_per_sec[egress];
	uint64_t burst = policy_burst_bytes(given->burst_bits[egress]);
	struct natra_group_limits l = {0};

	if (given->parent) {
		/* A floor is one in the directions that have a rate. */
		l.parent = policy_part(given->weight,
				       rate ? given->floor_bits_per_sec : 0);
		policy_join(&l.parent, given->parent, egress);
	}
	set_units(&l, rate, parent ? parent->rate_bits_per_sec[egress] : 0);
	if (!rate)
		return l;
	if (!burst)
		burst = policy_bytes_in(rate, POLICY_BURST_NS);
	l.rate = policy_rate(rate, burst);
	l.ramp_mult = UINT64_MAX / (l.rate.burst_ns ? l.rate.burst_ns : 1);
	l.fair_shift[0] = policy_fair_shift(&l.rate, POLICY_GSO_MAX_BYTES,
					    POLICY_FAIR_SHIFT_POLICED);
	l.fair_shift[1] = policy_fair_shift(&l.rate, POLICY_GSO_MAX_BYTES,
					    POLICY_FAIR_SHIFT_HELD);
	/* Members may hold packets for different times: none counts. */
	l.over = policy_over(rate, burst, 0);
	return l;
}
