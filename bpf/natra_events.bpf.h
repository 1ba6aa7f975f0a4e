/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* How the programs report events, see natra_events.h. */
#ifndef NATRA_EVENTS_BPF_H
#define NATRA_EVENTS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "natra_events.h"
#include "natra_maps.bpf.h"
#include "natra_packet.bpf.h"

static __always_inline void write_event(const struct natra_config *config,
					struct natra_state *state,
					const struct natra_tuple *tuple,
					__u32 reason, __u64 now_ns)
{
	struct natra_event_entry event;
	struct natra_event_ring *ring;
	const __u32 zero = 0;

	ring = bpf_map_lookup_elem(&natra_events, &zero);
	if (!ring)
		return; /* the verifier wants this check */
	event.reason = (__u16)reason;
	event.class_number = (__u16)config->class_number;
	event.time_ns = now_ns;
	event.owner = config->owner;
	event.tuple = *tuple;
	natra_event_write(ring, &event);
	__sync_fetch_and_add(&state->events_reported, 1);
}

/* Reports an event of this flow, if the slot may report one of this kind. */
natra_global int report_global(const struct natra_config *config,
			       struct natra_state *state,
			       const struct natra_tuple *tuple, __u32 reason)
{
	const __u64 now_ns = bpf_ktime_get_ns();

	if (!config || !state || !tuple)
		return 0; /* the verifier wants this check */
	reason %= NATRA_REPORT_WINDOWS;
	if (!natra_event_take(&state->event_tat[reason], now_ns,
			      natra_event_burst(reason))) {
		/* One event of any other kind stands for all of that kind in a
		 * window. */
		if (reason == NATRA_REPORT_HEAVY)
			__sync_fetch_and_add(&state->events_suppressed, 1);
		return 0;
	}
	write_event(config, state, tuple, reason, now_ns);
	return 0;
}

/*
 * Reports an event of the packet's flow. This is called only when something begins. The
 * packet is parsed into memory of the caller, because the frames of nested calls have
 * 512 bytes together.
 */
static __always_inline void report(struct __sk_buff *skb,
				   const struct natra_config *config,
				   struct natra_state *state,
				   struct natra_parsed_packet *parsed,
				   __u32 reason)
{
	write_parsed(skb, parsed);
	(void)parse_global(skb, parsed);
	(void)report_global(config, state, &parsed->tuple, reason);
}

#endif
