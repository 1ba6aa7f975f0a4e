/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* How the programs tell events, see natra_events.h. */
#ifndef NATRA_EVENTS_BPF_H
#define NATRA_EVENTS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "natra_events.h"
#include "natra_maps.bpf.h"
#include "natra_packet.bpf.h"

/*
 * Tells an event of a packet's flow, if the slot may tell one of this kind. It is
 * called only when something begins, and is global for the same reason as
 * parse_global.
 */
__noinline int tell_global(struct __sk_buff *skb,
			   const struct natra_config *config,
			   struct natra_state *state, __u32 reason)
{
	const __u64 now_ns = bpf_ktime_get_ns();
	struct natra_parsed_packet parsed;
	struct natra_event_entry event;
	struct natra_event_ring *ring;
	const __u32 zero = 0;

	ring = bpf_map_lookup_elem(&natra_events, &zero);
	if (!ring || !config || !state)
		return 0; /* the verifier wants this check */
	reason %= NATRA_TELL_MAX;
	if (!natra_event_take(&state->event_tat[reason], now_ns,
			      natra_event_burst(reason))) {
		/* Of the other kinds, one event stands for all in a window. */
		if (reason == NATRA_TELL_HEAVY)
			__sync_fetch_and_add(&state->events_untold, 1);
		return 0;
	}
	parse_slow(skb, &parsed);
	event.reason = reason;
	event.time_ns = now_ns;
	event.owner = config->owner;
	event.tuple = parsed.tuple;
	natra_event_write(ring, &event);
	__sync_fetch_and_add(&state->events_told, 1);
	return 0;
}

#endif
