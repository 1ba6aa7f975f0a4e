/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* How the programs find that small flows exceed the limit, see natra_over.h. */
#ifndef NATRA_OVER_BPF_H
#define NATRA_OVER_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "natra_events.bpf.h"
#include "natra_groups.bpf.h"
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

static __always_inline __u64 free_bytes(const struct natra_state *state)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < NATRA_STRIPES; i++)
		sum += NATRA_READ_ONCE(
			state->stripes[i].count[NATRA_COUNT_MICE].bytes);
	return sum;
}

/*
 * Adds the bytes of a member's free small flows to its group, and does for the group what
 * over_global() does for the slot. The event is told as one of the member. Returns the place of
 * the group's parent, 0 if it has none.
 */
natra_global __u32 over_group_global(const struct natra_config *config,
				     struct natra_state *state, __u32 place,
				     __u64 bytes, __u64 now_ns)
{
	const struct natra_group_limits *limits;
	struct natra_tuple none = {};
	struct natra_group *group;
	__u64 active, since_ns;

	if (!natra_fixed.has_groups || !config || !state)
		return 0; /* the verifier wants this check */
	group = group_at(place);
	if (!group)
		return 0;
	active = NATRA_READ_ONCE(group->active);
	limits = &group->limits[active & 1];
	__sync_fetch_and_add(&group->over.uncharged, bytes);
	if (!limits->over.rate ||
	    !natra_over_take(&group->over, now_ns, &since_ns))
		return limits->parent.group;
	none.saddr[0] = natra_over_judge(
		&group->over, &limits->over,
		&group->limits[(active + 1) & 1].over, (__u16)active,
		NATRA_READ_ONCE(group->charged.bytes) +
			NATRA_READ_ONCE(group->over.uncharged),
		since_ns, now_ns);
	none.saddr[1] = place;
	if (none.saddr[0])
		write_event(config, state, &none, NATRA_REPORT_OVER_LIMIT,
			    now_ns);
	return limits->parent.group;
}

/* Looks at the window that has passed, if nobody has, and reports that it was over the limit.
 * Returns the bytes of free small flows that the groups are to hear of. */
natra_global __u64 over_global(const struct natra_config *config,
			       struct natra_state *state, __u64 active,
			       __u64 now_ns)
{
	const struct natra_limits *limits;
	struct natra_tuple none = {};
	__u64 since_ns, bytes, heard;

	if (!config || !state)
		return 0; /* the verifier wants this check */
	limits = limits_of(config, active);
	if (!limits->over.rate ||
	    !natra_over_take(&state->over, now_ns, &since_ns))
		return 0;
	none.saddr[0] = natra_over_judge(&state->over, &limits->over,
					 &limits_of(config, active + 1)->over,
					 (__u16)active, passed_bytes(state),
					 since_ns, now_ns);
	if (none.saddr[0])
		write_event(config, state, &none, NATRA_REPORT_OVER_LIMIT,
			    now_ns);
	if (!natra_fixed.has_groups)
		return 0;
	bytes = free_bytes(state);
	heard = NATRA_READ_ONCE(state->over.uncharged);
	NATRA_WRITE_ONCE(state->over.uncharged, bytes);
	/* A change of limits may have put a later number there in between. The number of a slot
	 * that took another one's place may be less than 0. */
	return (__s64)(bytes - heard) > 0 ? bytes - heard : 0;
}

/* Does so, and lets the groups hear. One function calls the others, because the frames of nested
 * calls have 512 bytes together. */
static __always_inline void watch_limits(const struct natra_config *config,
					 struct natra_state *state,
					 const struct natra_limits *limits,
					 const struct packet *packet,
					 __u64 active)
{
	const __u64 bytes = over_global(config, state, active, packet->now_ns);
	__u32 place;

	if (!natra_fixed.has_groups || !bytes)
		return;
	place = over_group_global(config, state, limits->member.group, bytes,
				  packet->now_ns);
	(void)over_group_global(config, state, place, bytes, packet->now_ns);
}

#endif
