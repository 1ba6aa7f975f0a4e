/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* How the programs find that small flows exceed the limit, see natra_over.h. */
#ifndef NATRA_OVER_BPF_H
#define NATRA_OVER_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "natra_events.bpf.h"
#include "natra_over.h"
#include "natra_packet.bpf.h"

static __always_inline __u64 passed_bytes(const struct natra_state *state)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < NATRA_STRIPES; i++) {
		const struct natra_tally *count = state->stripes[i].count;

		sum += NATRA_READ_ONCE(count[NATRA_COUNT_MICE].bytes) +
		       NATRA_READ_ONCE(count[NATRA_COUNT_ADMITTED].bytes) +
		       NATRA_READ_ONCE(count[NATRA_COUNT_PACED].bytes) +
		       NATRA_READ_ONCE(count[NATRA_COUNT_MARKED].bytes);
	}
	return sum;
}

/* Looks at the window that has passed, if nobody has, and reports that it was over the limit. */
natra_global int over_global(const struct natra_config *config,
			     struct natra_state *state, __u64 active,
			     __u64 now_ns)
{
	const struct natra_limits *limits;
	struct natra_tuple none = {};
	__u64 since_ns;

	if (!config || !state)
		return 0; /* the verifier wants this check */
	limits = limits_of(config, active);
	if (!limits->over_rate ||
	    !natra_over_take(&state->over, now_ns, &since_ns))
		return 0;
	none.saddr[0] = natra_over_judge(&state->over, limits,
					 limits_of(config, active + 1), active,
					 passed_bytes(state), since_ns, now_ns);
	if (none.saddr[0])
		write_event(config, state, &none, NATRA_REPORT_OVER_LIMIT,
			    now_ns);
	return 0;
}

#endif
