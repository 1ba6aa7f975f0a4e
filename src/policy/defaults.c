/* SPDX-License-Identifier: BSD-2-Clause */
/* The defaults of a policy: what each member is that the caller left at 0. */
#include "policy/policy.h"

#include "policy/fields.h"
#include "util/clock.h"

__extension__ typedef unsigned __int128 u128;

/*
 * These bound what fq may hold of a pod. A longer queue takes memory and makes no
 * sender faster. On a fast link it has to last for a round trip, and on a slow link a
 * packet has to leave before its receiver gives up.
 */
#define QUEUE_BYTES    4000000
#define MIN_HORIZON_NS (NS_PER_S / 10)
#define MAX_HORIZON_NS (2 * NS_PER_S)

/* At least 1 if the rate is not 0, because 0 bits stand for a default. */
static uint64_t bits_in(uint64_t rate_bits_per_sec, uint64_t ns)
{
	const uint64_t bits =
		(uint64_t)((u128)rate_bits_per_sec * ns / NS_PER_S);

	return rate_bits_per_sec && !bits ? 1 : bits;
}

uint64_t policy_bytes_in(uint64_t rate_bits_per_sec, uint64_t ns)
{
	uint64_t bytes = (uint64_t)((u128)rate_bits_per_sec * ns / NS_PER_S /
				    BITS_PER_BYTE);

	return rate_bits_per_sec && !bytes ? 1 : bytes;
}

static uint64_t default_threshold(const struct natra_policy *p)
{
	uint64_t in = p->ingress_rate_bits_per_sec;
	uint64_t out = p->egress_rate_bits_per_sec;
	uint64_t low = in && (!out || in < out) ? in : out;

	return policy_bytes_in(low, POLICY_THRESHOLD_NS);
}

/*
 * A sender beyond the node feels no delay while a burst lasts, so it opens its window
 * up to the whole burst, and then loses the part that the pacer cannot hold.
 */
static uint64_t default_ingress_burst_ns(const struct natra_policy *p)
{
	return p->ingress_mode == NATRA_INGRESS_MODE_PACE &&
			       p->pace_limit_ns < POLICY_BURST_NS
		       ? p->pace_limit_ns
		       : POLICY_BURST_NS;
}

/* A member of a group waits for the group as well, which may be slower than the member, and whose
 * rate may change while it has members. */
static uint64_t default_horizon_ns(const struct natra_policy *p)
{
	uint64_t ns;

	if (!p->egress_rate_bits_per_sec || p->group[0])
		return MAX_HORIZON_NS;
	ns = QUEUE_BYTES * BITS_PER_BYTE * NS_PER_S /
	     p->egress_rate_bits_per_sec;
	if (ns > MAX_HORIZON_NS)
		return MAX_HORIZON_NS;
	return ns < MIN_HORIZON_NS ? MIN_HORIZON_NS : ns;
}

struct natra_policy policy_effective(const struct natra_policy *policy)
{
	struct natra_policy p = *policy;

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		if (!policy_field_get(&policy_fields[i], &p))
			policy_field_set(&policy_fields[i], &p,
					 policy_fields[i].standard);
	}
	if (!p.ingress_burst_bits)
		p.ingress_burst_bits = bits_in(p.ingress_rate_bits_per_sec,
					       default_ingress_burst_ns(&p));
	if (!p.egress_burst_bits)
		p.egress_burst_bits =
			bits_in(p.egress_rate_bits_per_sec, POLICY_BURST_NS);
	if (!p.heavy_hitter_threshold_bytes)
		p.heavy_hitter_threshold_bytes = default_threshold(&p);
	if (!p.horizon_ns)
		p.horizon_ns = default_horizon_ns(&p);
	return p;
}
