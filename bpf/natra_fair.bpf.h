/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* How the programs find and enforce fair shares, see natra_fair.h. */
#ifndef NATRA_FAIR_BPF_H
#define NATRA_FAIR_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "natra_compiler.h"
#include "natra_fair.h"
#include "natra_shared.h"

/* Adapts K, once in a tick. */
natra_global int adapt_global(struct natra_fair *fair, __u64 now_ns,
			      __u64 latest_ns, __u32 fair_shift, __u32 weight)
{
	if (!fair)
		return 0; /* the verifier wants this check */
	natra_fair_adapt(fair, now_ns, latest_ns, fair_shift, weight);
	return 0;
}

/* Does so by the exact clock, which it can afford once in a tick. */
static __always_inline void adapt(struct natra_fair *fair,
				  const struct natra_limits *limits, bool held)
{
	const __u64 now_ns = bpf_ktime_get_ns();

	(void)adapt_global(fair, now_ns,
			   natra_fair_latest(fair, limits, now_ns, held),
			   limits->fair_shift, 1);
}

/* Judges a packet that nothing can hold. A random number is drawn only for one
 * whose chance is not sure. */
static __always_inline enum natra_counter
police(const struct natra_limits *limits, __u64 now_ns, __u64 turn_ns)
{
	const __u64 chance = natra_fair_chance(limits, now_ns, turn_ns);
	__u32 random = 0;

	if (!chance)
		return NATRA_COUNT_ADMITTED;
	if (chance < NATRA_FAIR_SURE)
		random = bpf_get_prandom_u32();
	return natra_fair_police(limits, now_ns, turn_ns, chance, random);
}

natra_global int relieve_global(struct natra_state *state,
				const struct natra_limits *limits, __u64 hash,
				__u64 now_ns, __u64 turn_ns)
{
	if (!state || !limits)
		return 0; /* the verifier wants this check */
	natra_fair_relieve(state->clocks, hash, limits,
			   NATRA_READ_ONCE(state->fair.k_more), now_ns, turn_ns,
			   &state->forgiven_tat_ns);
	return 0;
}

#endif
