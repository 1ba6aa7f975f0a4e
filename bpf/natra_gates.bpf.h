/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Gates: limits of packets and of new connections in a second, which hold for mice
 * as well, because a flood is made of mice. Each is a bucket like that of bytes
 * (natra_bucket.h), in which a packet costs its segments, and a connection 1. What is
 * over either is dropped, also where packets could be held: a flood that waits is
 * still a flood.
 *
 * A connection begins with a TCP segment that has SYN and no ACK. The parser finds it
 * behind whatever headers it knows, also in a tunnel that the node may end. What hides its
 * flags from the parser counts as one as well:
 * - a first fragment, which can be so short that they are in the next one; TCP sends none
 *   by itself;
 * - more extension headers than the parser follows, which hosts accept, and IPsec's
 *   authentication header in a fragment or more than once;
 * - a frame with more VLAN tags: hosts take off any number of those with the id 0;
 * - a tunnel in a tunnel.
 */
#ifndef NATRA_GATES_BPF_H
#define NATRA_GATES_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "natra_bucket.h"
#include "natra_mice.bpf.h"
#include "natra_packet.bpf.h"
#include "natra_shared.h"

/* A packet of more segments than these, and than a limit passes in this time, has no room: what
 * it would owe would stop others' packets for long. It has more than GSO makes of UDP, and than
 * GRO joins of TCP with an MSS of 536. */
#define GATE_SEGS 128U
#define GATE_NS   1000000000ULL

/* Returns whether the bucket has room for so many, and takes them. The clock of the last
 * tick is never ahead, so what it admits may go. */
static __always_inline bool gate_take(__u64 *tat_ns,
				      const struct natra_rate *rate, __u32 n,
				      __u64 coarse_ns)
{
	const __u64 cost_ns =
		natra_cost_ns(rate, n, natra_dither(NATRA_READ_ONCE(*tat_ns)));

	if (natra_unlikely(n > GATE_SEGS) && cost_ns > GATE_NS)
		return false;
	return take_global(tat_ns, coarse_ns, rate->burst_ns, cost_ns, 0) !=
		       NATRA_BUCKET_REFUSED ||
	       take_global(tat_ns, bpf_ktime_get_ns(), rate->burst_ns, cost_ns,
			   0) != NATRA_BUCKET_REFUSED;
}

/* Converts what a bucket owes from another limit than this one. The slots of classes are given a
 * limit one after the other, and have not been given the same number of limits, so the limit
 * itself tells, and of CPUs that see the change one converts. */
static __always_inline void convert_gate(__u64 *tat_ns, __u64 *unit_ns,
					 __u64 *kept_ns,
					 const struct natra_rate *rate,
					 __u64 now_ns)
{
	const __u64 from_ns = NATRA_READ_ONCE(*unit_ns);
	const __u64 to_ns = natra_debt_unit(rate);

	if (natra_likely(from_ns == to_ns) || !rate->mult ||
	    __sync_val_compare_and_swap(unit_ns, from_ns, to_ns) != from_ns)
		return;
	natra_bucket_convert(tat_ns, now_ns > *kept_ns ? now_ns : *kept_ns,
			     from_ns, to_ns);
	*kept_ns = natra_debt_kept(*kept_ns, NATRA_READ_ONCE(*tat_ns), from_ns,
				   to_ns);
}

/* Judges a packet of so many segments, or the beginning of a connection. */
natra_global int gate_global(const struct natra_config *config,
			     struct natra_state *state,
			     const struct packet *packet, __u32 segs, __u32 syn)
{
	const struct natra_limits *limits;

	if (!config || !state || !packet)
		return NATRA_GATE_NONE; /* the verifier wants this check */
	limits = limits_of(config, packet->active);
	convert_gate(&state->packets_tat_ns, &state->gates.packets_ns,
		     &state->packets_kept_ns, &limits->packets, packet->now_ns);
	convert_gate(&state->connections_tat_ns, &state->gates.connections_ns,
		     &state->connections_kept_ns, &limits->connections,
		     packet->now_ns);
	if (limits->packets.mult &&
	    !gate_take(&state->packets_tat_ns, &limits->packets, segs,
		       packet->now_ns))
		return NATRA_GATE_PACKETS;
	/* Each segment of a GSO packet keeps its SYN. */
	if (syn && !gate_take(&state->connections_tat_ns, &limits->connections,
			      segs, packet->now_ns))
		return NATRA_GATE_CONNECTIONS;
	return NATRA_GATE_NONE;
}

/* Returns whether TCP whose header begins at `offset` begins a connection. */
static __always_inline bool is_syn(struct __sk_buff *skb, __u32 offset,
				   struct natra_parsed_packet *parsed)
{
	const __u8 *flags = (const __u8 *)parsed->raw;

	return NATRA_LOAD(skb, offset + NATRA_TCP_FLAGS_OFFSET, parsed->raw,
			  1) == 0 &&
	       (*flags & (NATRA_TCP_SYN | NATRA_TCP_ACK)) == NATRA_TCP_SYN;
}

/* Returns whether a connection begins inside of a tunnel. */
static __always_inline bool begins_inside(struct __sk_buff *skb,
					  struct natra_parsed_packet *parsed)
{
	const __u64 entered = enter_global(skb, parsed);
	__u32 offset = (__u32)entered;
	__u8 protocol;

	switch (natra_inner_l4(skb, &offset, (__u16)(entered >> 32), parsed,
			       &protocol)) {
	case NATRA_INNER_L4:
		return protocol == NATRA_PROTO_TCP &&
		       is_syn(skb, offset, parsed);
	case NATRA_INNER_HIDDEN:
		return true;
	default:
		return false;
	}
}

/* Returns whether a packet for which may_connect() is true begins a connection. */
natra_global int begins_global(struct __sk_buff *skb,
			       struct natra_parsed_packet *parsed)
{
	const struct natra_tuple *t;
	int kind;

	if (!parsed)
		return false; /* the verifier wants this check */
	kind = parse_global(skb, parsed);
	if (kind == NATRA_PARSED_OPAQUE)
		return true;
	t = &parsed->tuple;
	if (kind == NATRA_PARSED_CONTROL || parsed->later_piece)
		return false;
	if (natra_is_followed(t->version, t->protocol))
		return true;
	if (t->protocol == NATRA_PROTO_TCP)
		return t->fragment || is_syn(skb, parsed->l4_offset, parsed);
	if (t->fragment)
		return natra_is_tunnel(t->protocol) ||
		       (t->protocol == NATRA_PROTO_UDP &&
			NATRA_LOAD(skb, parsed->l4_offset, parsed->raw, 4) ==
				0 &&
			natra_is_tunnel_port(((const __u16 *)parsed->raw)[1]));
	return begins_inside(skb, parsed);
}

/* Returns which gate the packet does not pass. What all classes of an attachment have together is
 * in its own slot: their limits are those of the whole attachment, and a pod may choose its class,
 * by the DSCP. */
static __always_inline enum natra_gate
gate(struct __sk_buff *skb, const struct natra_config *config,
     struct natra_state *state, struct natra_parsed_packet *parsed,
     const struct packet *packet, bool counts_connections)
{
	__u32 syn = 0;

	if (natra_fixed.has_classes)
		state = state_of_all(skb, config);
	if (counts_connections && may_connect(skb)) {
		write_parsed(skb, parsed);
		syn = begins_global(skb, parsed);
	}
	return (enum natra_gate)gate_global(
		config, state, packet,
		natra_segs(skb->len, skb->gso_segs, skb->gso_size), syn);
}

#endif
