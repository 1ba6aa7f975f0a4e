// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The shaper. It polices packets where an interface receives (its tc ingress
 * hook) and where it sends (tc egress), or paces them there, with fq below it.
 *
 * A loaded program serves several attachments, in both directions. The stub of one,
 * which is what stands on the hook, calls it with the number of a slot in cb[0]; there
 * are the limits and the state of this attachment. Where peers are told apart, the stub
 * calls natra_classes first.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "natra_bucket.h"
#include "natra_classes.bpf.h"
#include "natra_classify.h"
#include "natra_compiler.h"
#include "natra_connects.bpf.h"
#include "natra_durations.h"
#include "natra_events.bpf.h"
#include "natra_fair.bpf.h"
#include "natra_fair.h"
#include "natra_flows.h"
#include "natra_gates.bpf.h"
#include "natra_groups.bpf.h"
#include "natra_maps.bpf.h"
#include "natra_mice.bpf.h"
#include "natra_over.bpf.h"
#include "natra_packet.bpf.h"
#include "natra_shared.h"
#include "natra_signal.bpf.h"
#include "natra_sketch.h"
#include "natra_wirelen.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* TC_ACT_UNSPEC is TCX_NEXT: what stands behind natra on the hook still runs. */
#define PASS TC_ACT_UNSPEC
#define DROP TC_ACT_SHOT

/*
 * Packets on which the link itself depends, such as ARP, have one allowance together, of
 * 64 units (4 kB) in a window, whatever the rate and in all classes of an attachment: in a
 * pod with a low rate the threshold is less than one ARP packet. Within it they are free in
 * every mode, and pass all gates; beyond it they are flows as any other. A longer packet is
 * none that a link needs, and would use up the allowance for a long time.
 */
#define LINK_UNITS        64U
#define LINK_UNIT_NS      ((1ULL << NATRA_WINDOW_SHIFT) / LINK_UNITS)
#define LINK_SENDER_UNITS (LINK_UNITS / 4)

/* Returns whether the interface sends the packet. */
static __always_inline bool is_sent(const struct __sk_buff *skb)
{
	return skb->cb[0] & NATRA_CALL_SENT;
}

/* Returns whether fq below can hold the packet. Where natra_fixed.holds is 0, the
 * verifier leaves out what depends on this. */
static __always_inline bool is_held(const struct __sk_buff *skb)
{
	return natra_fixed.holds && (skb->cb[0] & NATRA_CALL_HELD);
}

/* Returns whether natra_classes has found that the peer is exempt. */
static __always_inline bool is_exempt(const struct __sk_buff *skb)
{
	return natra_fixed.has_classes && (skb->cb[0] & NATRA_CALL_EXEMPT);
}

/*
 * Finds a place in the table for a flow that is not in it. It looks the state up again,
 * because a global function does not know how long the sketch is. A later piece of a datagram
 * has no ports, by which its flow would be known: a first one takes the place.
 */
natra_global int note_new_global(struct __sk_buff *skb,
				 struct natra_parsed_packet *parsed,
				 const struct packet *packet, __u32 estimate)
{
	const __u32 slot = skb->cb[0] & NATRA_CALL_SLOT;
	const struct natra_config *config;
	struct natra_flow_entry *entry;
	struct natra_state *state;

	config = bpf_map_lookup_elem(&natra_configs, &slot);
	state = bpf_map_lookup_elem(&natra_states, &slot);
	if (!config || !state || !parsed || !packet)
		return 0; /* the verifier wants this check */
	entry = natra_flow_evict(state->flows, state->sketch,
				 NATRA_SKETCH_WIDTH - 1, packet->hash, estimate,
				 packet->now_ns);
	if (!entry)
		return 0;
	(void)parse_global(skb, parsed);
	if (parsed->later_piece &&
	    natra_hash_tuple(config->keys, &parsed->tuple) != packet->hash)
		return 0;
	natra_flow_insert(entry, packet->hash, &parsed->tuple);
	natra_flow_add(entry, natra_flow_now(packet->now_ns), packet->bytes);
	return 0;
}

static __always_inline void note_flow(struct __sk_buff *skb,
				      struct natra_state *state,
				      struct natra_parsed_packet *parsed,
				      const struct packet *packet,
				      __u32 estimate)
{
	struct natra_flow_entry *entry =
		natra_flow_find(state->flows, packet->hash);

	if (natra_likely(entry)) {
		natra_flow_add(entry, natra_flow_now(packet->now_ns),
			       packet->bytes);
		return;
	}
	write_parsed(skb, parsed);
	(void)note_new_global(skb, parsed, packet, estimate);
}

/*
 * Converts what the buckets owe, and the latest turn, after the limits were changed: until the
 * old latest turn no overdraft would be bounded. What is within base_ns, which is now and the
 * longest delay that packets may have, stays: packets that fq holds already leave before the
 * next one, unless the horizon has become shorter. Then newer packets overtake them, and for
 * the rest of the old horizon both leave.
 */
static __noinline void settle(struct natra_state *state,
			      const struct natra_limits *limits, __u64 active,
			      __u64 now_ns)
{
	const __u64 to_ns = natra_debt_unit(&limits->rate);
	__u64 base_ns = now_ns + limits->max_delay_ns, from_ns;
	__u64 *tats[] = {
		&state->fair.tat_ns,     &state->fair.latest_ns,
		&state->forgiven_tat_ns, &state->mice_tat_ns,
		&state->tiny_tat_ns,
	};

	if (!settles(&state->settled, active))
		return;
	from_ns = state->settled_ns;
	state->settled_ns = to_ns;
	if (base_ns < state->kept_ns)
		base_ns = state->kept_ns;
#pragma unroll
	for (unsigned int i = 0; i < sizeof(tats) / sizeof(*tats); i++) {
		natra_bucket_convert(tats[i], base_ns, from_ns, to_ns);
		state->kept_ns = natra_debt_kept(state->kept_ns,
						 NATRA_READ_ONCE(*tats[i]),
						 from_ns, to_ns);
	}
}

/*
 * Adds n to a counter of a stripe. Programs run with bottom halves off and do not move
 * to another CPU, so a stripe that one CPU uses has one writer. (On a real-time
 * kernel another task's packet may run on the same CPU in between: that
 * packet's count is lost.)
 */
static __always_inline void add(__u64 *counter, __u64 n)
{
	if (natra_fixed.stripes_shared)
		__sync_fetch_and_add(counter, n);
	else
		*counter += n;
}

/* fq below holds the packet. */
static __always_inline void hold(struct natra_stripe *stripe,
				 struct packet *packet, __u64 now_ns,
				 __u64 depart_ns)
{
	const __u64 delay_ns = depart_ns - now_ns;
	struct natra_durations *delays = &stripe->delays;
	__u32 bucket = natra_duration_bucket(delay_ns);

	packet->depart_ns = depart_ns;
	add(&delays->sum_ns, delay_ns);
	/* The verifier wants the comparison, which the compiler would leave
	 * out. */
	asm volatile("" : "+r"(bucket));
	if (bucket < NATRA_DURATION_BUCKETS)
		add(&delays->count[bucket], 1);
}

/*
 * Returns for how long a mouse that is charged may wait. Mice are charged when they
 * come, so the bucket is ahead by what they wait. A wait that exceeds the bound of the
 * overdraft delays elephants, and not by so much that forwarded ones are dropped.
 */
static __always_inline __u64 mouse_limit(const struct __sk_buff *skb,
					 const struct natra_limits *limits)
{
	const __u64 felt_ns = (natra_fair_bound(limits->fair_shift)
			       << (limits->fair_shift & 63)) +
			      limits->unfelt_delay_ns;

	if (!is_held(skb) || has_other_peers(skb))
		return 0;
	if (!is_felt(skb))
		return limits->unfelt_delay_ns;
	return felt_ns < limits->max_delay_ns ? felt_ns : limits->max_delay_ns;
}

/* Charges a mouse, see natra_mice.bpf.h, and decides what becomes of it. */
static __always_inline enum natra_counter
charge_mouse(struct __sk_buff *skb, struct natra_state *state,
	     struct natra_stripe *stripe, const struct natra_limits *limits,
	     struct packet *packet, __u64 now_ns, __u64 dither)
{
	const __u64 depart_ns =
		natra_mouse_take(state, limits, packet->bytes, now_ns, dither,
				 mouse_limit(skb, limits));
	const bool felt = is_felt(skb);
	enum natra_counter outcome;

	if (depart_ns <= now_ns)
		return NATRA_COUNT_MICE;
	if (!is_held(skb) || has_other_peers(skb))
		return NATRA_COUNT_DROPPED_RATE;
	outcome = natra_fair_hold(limits, now_ns, depart_ns, felt);
	if (outcome == NATRA_COUNT_DROPPED_HORIZON)
		return outcome;
	hold(stripe, packet, now_ns, depart_ns);
	/* Its queue is that of all mice over their share, so it does not lose for it. */
	return depart_ns - now_ns > natra_fair_longest(limits, felt) / 2 &&
			       set_ce(skb)
		       ? NATRA_COUNT_MARKED
		       : outcome;
}

static __always_inline bool is_dropped(enum natra_counter outcome)
{
	return outcome == NATRA_COUNT_DROPPED_RATE ||
	       outcome == NATRA_COUNT_DROPPED_HORIZON;
}

/* Decides what becomes of a packet of a heavy flow, and charges it if it goes. One that is
 * dropped changes nothing, unless its flow's clock is set back. */
static __always_inline enum natra_counter
charge_heavy(struct __sk_buff *skb, struct natra_state *state,
	     struct natra_stripe *stripe, const struct natra_limits *limits,
	     struct packet *packet, __u64 group_ns, __u64 dither)
{
	const __u64 cost_ns =
		natra_cost_ns(&limits->rate, packet->bytes, dither);
	struct natra_fair *fair = &state->fair;
	enum natra_counter outcome;
	struct natra_span span;
	struct natra_turn turn;
	__u64 now_ns = packet->now_ns, turn_ns;
	const bool held = is_held(skb);
	bool forgiven, own;

	natra_fair_span(fair, limits, now_ns, cost_ns, held, &span);
	if (natra_unlikely(now_ns >> NATRA_FAIR_TICK_SHIFT >
			   NATRA_READ_ONCE(fair->tick)))
		adapt(fair, limits, held);
	natra_fair_turn(fair, state->clocks, packet->hash, &span,
			limits->fair_shift, &turn);
	turn_ns = turn.turn_ns;
	if (natra_fixed.has_groups && turn_ns < group_ns)
		turn_ns = group_ns;
	/* The exact clock costs as much as all the rest. With groups it has been read
	 * already. */
	if (!natra_fixed.has_groups &&
	    natra_fair_is_near(limits, now_ns, turn_ns, held))
		now_ns = bpf_ktime_get_ns();
	if (held) {
		outcome =
			natra_fair_hold(limits, now_ns, turn_ns, is_felt(skb));
		if (outcome == NATRA_COUNT_PACED)
			outcome = signal_global(
				skb, limits, cost_ns, turn_ns - now_ns,
				turn.turn_ns < group_ns ? NO_FLOW
							: span.k_more);
	} else {
		outcome = police(limits, now_ns, turn_ns);
		if (outcome == NATRA_COUNT_MARKED && !set_ce(skb))
			outcome = NATRA_COUNT_DROPPED_RATE;
	}
	/* Nothing is forgiven if a packet is marked or dropped because its group, and not its
	 * flow, is over its share. */
	own = !held && turn.turn_ns >= group_ns;
	if (is_dropped(outcome)) {
		/* Under a flood this is all that it costs. */
		if (own && NATRA_READ_ONCE(state->forgiven_tat_ns) <= now_ns)
			(void)relieve_global(state, limits, packet->hash,
					     now_ns, turn.turn_ns);
		return outcome;
	}
	forgiven = own && outcome == NATRA_COUNT_MARKED &&
		   natra_fair_forgive(&state->forgiven_tat_ns, now_ns, cost_ns);
	natra_fair_charge(fair, &span, &turn, cost_ns, forgiven);
	if (held && turn_ns > now_ns)
		hold(stripe, packet, now_ns, turn_ns);
	return outcome;
}

/* Charges a packet that is not free, and decides what becomes of it. */
static __always_inline enum natra_counter
charge(struct __sk_buff *skb, const struct natra_limits *limits,
       struct natra_state *state, struct natra_stripe *stripe,
       struct packet *packet)
{
	const __u64 active = packet->active;
	__u64 dither, group_ns = 0, now_ns;

	if (natra_fixed.has_groups) {
		group_ns = packet->group_ns;
		packet->depart_ns = 0;
		if (!is_held(skb))
			group_ns = natra_group_from_scale(limits->rate.burst_ns,
							  packet->now_ns,
							  group_ns);
	}
	now_ns = packet->now_ns;
	/* The longest delay is also the longest overdraft, see natra_limits. */
	if (natra_unlikely(NATRA_READ_ONCE(state->settled) != active))
		settle(state, limits, active, now_ns);
	if (!natra_fixed.has_groups && packet->mouse)
		now_ns = bpf_ktime_get_ns();
	/* tat_ns alone would stay the same once the dither has made a cost 0. */
	dither = natra_dither(NATRA_READ_ONCE(state->fair.tat_ns) +
			      ((__u64)packet->seed << 32));
	if (natra_fixed.has_groups && packet->mouse &&
	    natra_group_refuses(now_ns, group_delay(limits, is_held(skb)),
				group_ns))
		return is_held(skb) ? NATRA_COUNT_DROPPED_HORIZON
				    : NATRA_COUNT_DROPPED_RATE;
	if (natra_unlikely(packet->mouse))
		return charge_mouse(skb, state, stripe, limits, packet, now_ns,
				    dither);
	return charge_heavy(skb, state, stripe, limits, packet, group_ns,
			    dither);
}

/* Reports that packets of heavy flows begin to be dropped, or that mice begin to wait
 * or to be dropped. */
static __always_inline void
report_outcome(struct __sk_buff *skb, const struct natra_config *config,
	       struct natra_state *state, struct natra_parsed_packet *parsed,
	       const struct packet *packet, __u32 outcome)
{
	__u32 reason;

	if (packet->mouse)
		reason = NATRA_REPORT_MICE_OVER_SHARE;
	else if (outcome == NATRA_COUNT_DROPPED_RATE)
		reason = NATRA_REPORT_DROPPED_RATE;
	else if (outcome == NATRA_COUNT_DROPPED_HORIZON)
		reason = NATRA_REPORT_DROPPED_HORIZON;
	else
		return;
	reason = (__u32)NATRA_FORGET(reason, packet->hash);
	/* Under a flood this is all that it costs. */
	if (reason < NATRA_REPORT_WINDOWS &&
	    natra_event_is_due(&state->event_tat[reason], packet->now_ns))
		report(skb, config, state, parsed, reason);
}

/* Counts and tells that a gate drops the packet. */
static __always_inline __u32 drop_at_gate(struct __sk_buff *skb,
					  const struct natra_config *config,
					  struct natra_state *state,
					  struct natra_stripe *stripe,
					  struct natra_parsed_packet *parsed,
					  const struct packet *packet,
					  __u32 over)
{
	struct natra_tally *tally = over == NATRA_GATE_PACKETS
					    ? &stripe->over_packets
					    : &stripe->over_connections;

	add(&tally->packets, 1);
	add(&tally->bytes, natra_believed(packet->bytes, skb->len));
	if (natra_event_is_due(&state->event_tat[NATRA_REPORT_DROPPED_RATE],
			       packet->now_ns))
		report(skb, config, state, parsed, NATRA_REPORT_DROPPED_RATE);
	return (__u32)NATRA_FORGET(NATRA_COUNT_DROPPED_RATE, packet->hash);
}

/*
 * Returns whether the allowance of what the link depends on has room for the packet, and
 * takes it. What reaches a pod may be the broadcasts of any neighbour, so there those who
 * send more than their part have none of it, for as long as they do, and all others share
 * it. A sender is known by the MAC address of the frame: who takes others' ones may as well
 * have the bridge send him their frames.
 */
natra_global int link_global(struct __sk_buff *skb,
			     const struct natra_config *config,
			     const struct packet *packet, __u32 units)
{
	struct natra_state *state;
	__u32 mac[2] = {0};
	__u64 hash;

	if (!config || !packet)
		return false; /* the verifier wants this check */
	state = state_of_all(skb, config);
	if (!state || units > LINK_UNITS)
		return false;
	hash = packet->hash;
	if (natra_fixed.has_l2 &&
	    bpf_skb_load_bytes(skb, NATRA_MAC_LEN, mac, NATRA_MAC_LEN) == 0)
		hash = natra_hash_v4(config->keys, mac[0], mac[1], 0, 0);
	if (!(skb->cb[0] & NATRA_CALL_PEER_TO) &&
	    natra_sketch_add(state->link_senders, NATRA_LINK_WIDTH - 1, hash,
			     units,
			     natra_epoch(packet->now_ns)) > LINK_SENDER_UNITS)
		return false;
	return take_global(&state->link_tat_ns, packet->now_ns,
			   LINK_UNITS * LINK_UNIT_NS, units * LINK_UNIT_NS,
			   0) != NATRA_BUCKET_REFUSED;
}

static __always_inline __u32 judge(struct __sk_buff *skb,
				   const struct natra_config *config,
				   struct natra_state *state,
				   struct natra_stripe *stripe,
				   struct packet *packet)
{
	struct natra_parsed_packet parsed;
	const __u64 active = NATRA_READ_ONCE(config->active);
	const struct natra_limits *limits = limits_of(config, active);
	__u32 believed, enter, epoch, estimate, leave, outcome, units;
	enum natra_heavy heavy;
	bool control;

	packet->now_ns = bpf_ktime_get_coarse_ns();
	control = read_packet(skb, is_sent(skb), config, &parsed, packet);
	if (natra_fixed.has_classes &&
	    natra_unlikely(skb->cb[0] & NATRA_CALL_HIDDEN))
		return (__u32)NATRA_FORGET(NATRA_COUNT_DROPPED_RATE,
					   packet->hash);
	if (natra_unlikely(!limits->rate.mult) || is_exempt(skb))
		return (__u32)NATRA_FORGET(NATRA_COUNT_UNLIMITED, packet->hash);
	believed = natra_believed(packet->bytes, skb->len);
	/* It counts as what the interface carries of it. */
	if (natra_unlikely(believed < packet->bytes) &&
	    is_crafted(skb, &parsed, packet)) {
		packet->bytes = skb->len;
		return (__u32)NATRA_FORGET(NATRA_COUNT_DROPPED_RATE,
					   packet->hash);
	}

	enter = limits->enter_units;
	leave = limits->leave_units;
	if (natra_fixed.has_groups && !group_threshold(limits, &enter, &leave))
		return (__u32)NATRA_FORGET(NATRA_COUNT_UNLIMITED, packet->hash);

	units = natra_units(believed);
	if (natra_unlikely(control) && link_global(skb, config, packet, units))
		return (__u32)NATRA_FORGET(NATRA_COUNT_OTHER, packet->hash);
	packet->active = active;
	if (natra_unlikely(limits->has_gates)) {
		outcome = gate(skb, config, state, &parsed, packet,
			       limits->connections.mult);
		if (outcome != NATRA_GATE_NONE)
			return drop_at_gate(skb, config, state, stripe, &parsed,
					    packet, outcome);
	}
	/* A flood that the gates stop must not make other flows seem to be heavy. */
	epoch = natra_epoch(packet->now_ns);
	estimate = natra_sketch_add(state->sketch, NATRA_SKETCH_WIDTH - 1,
				    packet->hash, units, epoch);
	heavy = natra_is_heavy(state->heavy, packet->hash, estimate, units,
			       enter, leave, epoch);
	if (!heavy && limits->pass == NATRA_PASS_FREE) {
		if (natra_unlikely(!(stripe->count[NATRA_COUNT_MICE].packets %
				     NATRA_OVER_PACKETS)))
			watch_limits(config, state, limits, packet, active);
		return NATRA_COUNT_MICE;
	}
	packet->mouse = !heavy && limits->pass != NATRA_PASS_OFF;
	if (!packet->mouse)
		note_flow(skb, state, &parsed, packet, estimate);
	if (natra_unlikely(NATRA_FORGET((__u64)heavy, packet->hash) ==
			   NATRA_HEAVY_NOW))
		report(skb, config, state, &parsed, NATRA_REPORT_HEAVY);
	packet->seed = (stripe->count[NATRA_COUNT_ADMITTED].packets +
			stripe->count[NATRA_COUNT_MICE].packets) &
		       0x3fffffff;
	if (natra_fixed.has_groups)
		group_ask(skb, config, limits, packet, is_held(skb));
	/* charge() is inline, because a call takes a tenth of such a packet's time. If the
	 * verifier knew the outcome, it would walk what follows once for each of them. */
	outcome = (__u32)NATRA_FORGET(
		charge(skb, limits, state, stripe, packet), packet->hash);
	if (natra_fixed.has_groups && !is_dropped(outcome))
		group_charge(skb, config, limits, packet, is_held(skb));
	if (natra_unlikely(outcome - NATRA_COUNT_PACED <=
			   NATRA_COUNT_DROPPED_HORIZON - NATRA_COUNT_PACED)) {
		report_outcome(skb, config, state, &parsed, packet, outcome);
		/* It has been compared with some outcomes. */
		outcome = (__u32)NATRA_FORGET(outcome, packet->hash);
	}
	return outcome;
}

/* Lowers the highest priority to the one below it: before Linux 6.7, fq sends
 * packets of the highest priority at once, whatever their departure time. Since
 * 6.7 both priorities are in the same band. */
static __always_inline void heed_fq(struct __sk_buff *skb)
{
	__u32 priority = skb->priority;

	if ((priority & TC_PRIO_MAX) == TC_PRIO_CONTROL)
		skb->priority =
			priority - TC_PRIO_CONTROL + TC_PRIO_INTERACTIVE;
}

/*
 * Returns whether the stamp that the packet came with may be a departure time, from TCP or
 * SO_TXTIME. Only a socket behind this hook may ask for one: its buffer bounds what it has in
 * fq, which others would fill who send into a pod. Before Linux 6.11 the stamp of SO_TXTIME has
 * no type, and before 5.18 none has.
 */
static __always_inline bool may_be_departure(const struct __sk_buff *skb)
{
	return is_felt(skb) &&
	       (!natra_fixed.sets_tstamp ||
		skb->tstamp_type <= BPF_SKB_TSTAMP_DELIVERY_MONO);
}

/*
 * Writes the departure time. A stamp of CLOCK_MONOTONIC that the packet came with is
 * a departure time. One of another clock is not: fq would take it for a time far beyond
 * its horizon, and drop the packet. One without a type gets it, because fq asks for it since
 * Linux 7.2.
 */
static __always_inline void stamp(struct __sk_buff *skb,
				  const struct packet *packet)
{
	__u64 depart_ns = packet->depart_ns;
	__u64 own_ns;

	if (depart_ns)
		heed_fq(skb);
	own_ns = skb->tstamp;
	if (own_ns > depart_ns &&
	    own_ns < packet->now_ns + NATRA_DELAY_MAX_NS &&
	    may_be_departure(skb)) {
		if (!natra_fixed.sets_tstamp ||
		    skb->tstamp_type == BPF_SKB_TSTAMP_DELIVERY_MONO)
			return;
		depart_ns = own_ns;
	}
	if (!own_ns && !depart_ns)
		return;
	/* The helper takes IP only; a tag in the frame makes it something else. */
	if (!natra_fixed.sets_tstamp ||
	    bpf_skb_set_tstamp(skb, depart_ns,
			       depart_ns ? BPF_SKB_TSTAMP_DELIVERY_MONO
					 : BPF_SKB_TSTAMP_UNSPEC) < 0)
		skb->tstamp = depart_ns;
}

SEC("tc")
int natra_shape(struct __sk_buff *skb)
{
	const __u32 slot = skb->cb[0] & NATRA_CALL_SLOT;
	const struct natra_config *config;
	struct natra_state *state;
	struct natra_stripe *stripe;
	struct packet packet = {};
	__u32 outcome;

	config = bpf_map_lookup_elem(&natra_configs, &slot);
	state = bpf_map_lookup_elem(&natra_states, &slot);
	if (!config || !state)
		return PASS; /* for the verifier: stubs give what there is */
	stripe = &state->stripes[bpf_get_smp_processor_id() % NATRA_STRIPES];
	outcome = judge(skb, config, state, stripe, &packet);
	/* One copy of what follows, not one for each outcome. The verifier knows
	 * nothing of what a global function returns. */
	asm volatile("" : "+r"(outcome));
	outcome %= NATRA_COUNT_MAX;
	/* Nobody pays for these. What they are told to have on the wire, and need not have, would hide
	 * from the comparison of natra with the interface what goes around natra. */
	if (is_dropped(outcome) || outcome == NATRA_COUNT_UNLIMITED)
		packet.bytes = natra_believed(packet.bytes, skb->len);
	add(&stripe->count[outcome].packets, 1);
	add(&stripe->count[outcome].bytes, packet.bytes);
	if (natra_fixed.measures_connects)
		measure_connect(skb, state,
				is_dropped(outcome) ? NEVER : packet.depart_ns);
	if (is_held(skb))
		stamp(skb, &packet);
	return is_dropped(outcome) ? DROP : PASS;
}
