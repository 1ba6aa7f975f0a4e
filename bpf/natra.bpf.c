// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The shaper. natra_rx polices where an interface receives (its tc ingress
 * hook), natra_tx where it sends (tc egress), and natra_edt paces there, with
 * fq below it. Which of them serves the pod's ingress depends on the side on
 * which it is attached.
 *
 * A loaded program serves several attachments. The stub of one, which is what
 * stands on the hook, calls it with the number of a slot in cb[0]; there are the
 * limits and the state of this attachment. Those with subnets have programs of
 * their own, *_nets, which attachments with the same subnets share.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#define NATRA_LOAD(ctx, offset, to, len)                                       \
	bpf_skb_load_bytes((struct __sk_buff *)(ctx), offset, to, len)

#include "natra_bucket.h"
#include "natra_classify.h"
#include "natra_compiler.h"
#include "natra_fair.h"
#include "natra_flows.h"
#include "natra_hash.h"
#include "natra_maps.bpf.h"
#include "natra_mice.bpf.h"
#include "natra_parse.h"
#include "natra_shared.h"
#include "natra_sketch.h"
#include "natra_tunnel.h"
#include "natra_wirelen.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* TC_ACT_UNSPEC is TCX_NEXT: what stands behind natra on the hook still runs. */
#define PASS TC_ACT_UNSPEC
#define DROP TC_ACT_SHOT

#define AF_UNSPEC 0 /* sys/socket.h is of the C library */

/*
 * This function is global, so the verifier checks it once, by itself, and
 * afterwards knows nothing of what it wrote. If it were static, the verifier
 * would walk the callers once for each kind of packet, since *parsed is on
 * their stack.
 */
__noinline int parse_global(struct __sk_buff *skb,
			    struct natra_parsed_packet *parsed)
{
	if (!parsed)
		return NATRA_PARSED_OTHER; /* the verifier wants this check */
	return natra_parse(skb, natra_fixed.has_l2, parsed);
}

/* Off the fast path: what it cannot parse, and the tuple of a new flow. */
static __noinline int parse_slow(struct __sk_buff *skb,
				 struct natra_parsed_packet *parsed)
{
	/* The verifier demands that memory which is passed to a global function
	 * has been written before. This call writes all of it, with zeroes if
	 * the packet is shorter. */
	(void)bpf_skb_load_bytes(skb, 0, parsed, sizeof(*parsed));
	return parse_global(skb, parsed);
}

/* Returns the bytes that a tunnel adds to the headers of each GSO segment. It
 * is global for the same reason as parse_global. */
__noinline int tunnel_len_global(struct __sk_buff *skb,
				 struct natra_parsed_packet *parsed)
{
	if (!parsed)
		return 0; /* the verifier wants this check */
	return (int)natra_tunnel_len(skb, skb->gso_size, parsed);
}

/* The slow path takes it for IPv4, too. */
static __noinline __u64 hash_v6(const __u64 *keys, const __u32 *saddr,
				const __u32 *daddr, __u32 ports, __u32 kind)
{
	return natra_hash_v6(keys, saddr, daddr, ports, kind);
}

/* What hash_fast needs of layer 4: the ports, and where TCP's header ends. */
#define L4_FAST_LEN 13

/*
 * Hashes by direct packet access what nearly all packets are: TCP or UDP, no
 * VLAN tag in the frame, no IP options or extension headers, no fragment, no
 * tunnel's GSO packet. Returns false for all others. The hash is that of the
 * tuple which parse_slow would find; of the tuple itself only what is_exempt
 * needs is set.
 */
static __always_inline bool hash_fast(struct __sk_buff *skb, bool tx,
				      const __u64 *keys, bool subnets,
				      struct natra_tuple *tuple,
				      __u64 *ret_hash, __u32 *ret_header_len)
{
	const __u32 l2_len = natra_fixed.has_l2 ? NATRA_ETH_LEN : 0;
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	void *l3 = data + l2_len;
	const struct iphdr *ip4 = l3;
	const struct ipv6hdr *ip6 = l3;
	__u32 l3_len = sizeof(*ip4);
	__u8 protocol, version = 4;

	if (l3 + sizeof(*ip4) + L4_FAST_LEN > end)
		return false;
	if (natra_fixed.has_l2) {
		__u16 type = *(__u16 *)(l3 - 2);

		if (type == natra_be16(NATRA_ETHERTYPE_IPV6))
			version = 6;
		else if (type != natra_be16(NATRA_ETHERTYPE_IPV4))
			return false;
	} else {
		version = ip4->version;
	}

	if (version == 4) {
		protocol = ip4->protocol;
		if (*(__u8 *)ip4 != 0x45 ||
		    (ip4->frag_off & natra_be16(0x3fff)))
			return false;
		if (subnets) {
			tuple->version = 4;
			tuple->saddr[0] = ip4->saddr;
			tuple->daddr[0] = ip4->daddr;
		}
		*ret_hash = natra_hash_v4(keys, ip4->saddr, ip4->daddr,
					  *(__u32 *)(ip4 + 1),
					  natra_hash_kind(4, protocol, 0));
	} else {
		protocol = ip6->nexthdr;
		l3_len = sizeof(*ip6);
		if (ip6->version != 6 || l3 + sizeof(*ip6) + L4_FAST_LEN > end)
			return false;
		if (subnets) {
			tuple->version = 6;
			__builtin_memcpy(tuple->saddr, &ip6->saddr, 16);
			__builtin_memcpy(tuple->daddr, &ip6->daddr, 16);
		}
		*ret_hash =
			hash_v6(keys, ip6->saddr.in6_u.u6_addr32,
				ip6->daddr.in6_u.u6_addr32, *(__u32 *)(ip6 + 1),
				natra_hash_kind(6, protocol, 0));
	}
	if (protocol == NATRA_PROTO_TCP) {
		*ret_header_len =
			l2_len + l3_len + (((__u8 *)l3)[l3_len + 12] >> 4) * 4U;
		return true;
	}
	*ret_header_len = l2_len + l3_len + NATRA_UDP_LEN;
	return protocol == NATRA_PROTO_UDP &&
	       (tx || !natra_is_tunnel_port(*(__u16 *)(l3 + l3_len + 2)) ||
		!skb->gso_size);
}

struct packet {
	__u64 hash;
	__u64 now_ns;    /* of the last tick, which is enough for windows */
	__u64 depart_ns; /* 0: now */
	__u32 bytes;     /* on the wire */
};

/*
 * A flow of packets on which the link itself depends, such as ARP, passes
 * uncharged while it has fewer units than this in a window, whatever the
 * threshold: in a pod with a low rate the threshold is less than one ARP
 * packet.
 */
#define CONTROL_UNITS 64U

/* Of a stamp that a socket asked for; under the horizon of natra's fq. */
#define MAX_STAMP_NS 9000000000ULL

/* Reads the packet into *ret. Returns true if the link itself may depend on the
 * packet, which is then no data of the pod. */
static __always_inline bool read_packet(struct __sk_buff *skb, bool tx,
					const __u64 *keys, bool subnets,
					struct natra_parsed_packet *parsed,
					struct packet *ret)
{
	const struct natra_tuple *t;
	__u32 header_len, segs, wire_len = skb->wire_len;
	__u64 control = 0;

	if (natra_unlikely(!hash_fast(skb, tx, keys, subnets, &parsed->tuple,
				      &ret->hash, &header_len))) {
		control = parse_slow(skb, parsed) == NATRA_PARSED_CONTROL;
		t = &parsed->tuple;
		ret->hash = hash_v6(
			keys, t->saddr, t->daddr, t->ports,
			natra_hash_kind(t->version, t->protocol, t->fragment));
		header_len = parsed->header_len;
		if (!tx && skb->gso_size)
			header_len += (__u32)tunnel_len_global(skb, parsed);
		/* wire_len gives each segment of BIG TCP a jumbo header. */
		if (tx)
			wire_len -= parsed->jumbo_len * skb->gso_segs;
	}
	/*
	 * Before Linux 6.19 wire_len leaves out the headers of GSO segments at
	 * the ingress hook.
	 */
	ret->bytes = tx ? natra_told_len(skb->len, wire_len)
			: natra_gso_len(skb->len, skb->gso_segs, skb->gso_size,
					header_len);
	/* A tag that the kernel keeps in the skb is not in its length. */
	if (natra_unlikely(skb->vlan_present)) {
		segs = skb->gso_segs;
		ret->bytes += NATRA_VLAN_LEN * (segs > 1 ? segs : 1);
	}
	return NATRA_FORGET(control, ret->hash);
}

/*
 * Whether the other end's address frees a packet from the limits. One that
 * hides its addresses (version 0) is not free: it may be anybody's.
 */
static __always_inline bool is_exempt(const struct natra_tuple *tuple)
{
	struct natra_subnet peer = {
		/* More than a block has: its own prefix decides. */
		.prefix_bits = NATRA_SUBNET_BITS_MAX,
		.version = tuple->version,
	};
	bool found;

	if (!tuple->version)
		return false;
	__builtin_memcpy(peer.addr,
			 natra_fixed.peer_is_to ? tuple->daddr : tuple->saddr,
			 sizeof(peer.addr));
	found = bpf_map_lookup_elem(&natra_subnets, &peer);
	return found == (natra_fixed.subnets == NATRA_SUBNETS_UNSHAPED);
}

static __always_inline void note_flow(struct __sk_buff *skb,
				      struct natra_state *state,
				      struct natra_parsed_packet *parsed,
				      const struct packet *packet, __u64 now_ns)
{
	__u32 now = natra_flow_now(now_ns);
	struct natra_flow_entry *entry;

	entry = natra_flow_find(state->flows, packet->hash, now);
	if (natra_unlikely(entry->tag != natra_flow_tag(packet->hash))) {
		parse_slow(skb, parsed);
		natra_flow_insert(entry, packet->hash, &parsed->tuple);
	}
	natra_flow_add(entry, now, packet->bytes);
}

/*
 * The helper writes at the network header, which for a frame with a VLAN tag
 * inside is that tag.
 */
static __always_inline bool set_ce(struct __sk_buff *skb)
{
	if (skb->protocol != natra_be16(NATRA_ETHERTYPE_IPV4) &&
	    skb->protocol != natra_be16(NATRA_ETHERTYPE_IPV6))
		return false;
	return bpf_skb_ecn_set_ce(skb) == 1;
}

/*
 * Cuts what the buckets owe to the time latest_ns, after the limits were
 * changed: a packet that took 15 s at the old rate would otherwise keep the pod
 * waiting that long at the new one. latest_ns is the longest delay that packets
 * may have. Packets that fq holds already leave before the next one, unless the
 * horizon has become shorter: then newer packets overtake them, and for the
 * rest of the old horizon both leave.
 */
static __noinline void settle(struct natra_state *state, __u64 active,
			      __u64 latest_ns)
{
	if (natra_bucket_cut(&state->fair.tat_ns, latest_ns) &&
	    natra_bucket_cut(&state->mice_tat_ns, latest_ns))
		NATRA_WRITE_ONCE(state->settled, active);
}

/* fq below holds the packet. */
static __always_inline void hold(struct natra_state *state,
				 struct packet *packet, __u64 now_ns,
				 __u64 depart_ns)
{
	packet->depart_ns = depart_ns;
	__sync_fetch_and_add(&state->delay_ns_sum, depart_ns - now_ns);
}

/* Charges a mouse, see natra_mice.bpf.h, and decides what becomes of it. */
static __always_inline enum natra_counter
charge_mouse(struct __sk_buff *skb, struct natra_state *state,
	     const struct natra_limits *limits, struct packet *packet,
	     __u64 now_ns, __u64 dither, bool edt)
{
	const __u64 depart_ns =
		natra_mouse_take(state, limits, packet->bytes, now_ns, dither,
				 edt ? limits->unfelt_delay_ns : 0);
	enum natra_counter outcome;

	if (depart_ns <= now_ns)
		return NATRA_COUNT_MICE;
	if (!edt)
		return NATRA_COUNT_DROPPED_RATE;
	outcome = natra_fair_hold(limits, now_ns, depart_ns, false);
	if (outcome == NATRA_COUNT_DROPPED_HORIZON)
		return outcome;
	hold(state, packet, now_ns, depart_ns);
	return outcome == NATRA_COUNT_MARKED && !set_ce(skb) ? NATRA_COUNT_PACED
							     : outcome;
}

/* Returns by how much a packet of a heavy flow may overdraw the bucket. */
static __always_inline __u64 debt_limit(const struct natra_limits *limits,
					bool edt)
{
	return edt ? limits->max_delay_ns : limits->max_overdraft_ns;
}

static __always_inline bool is_dropped(enum natra_counter outcome)
{
	return outcome == NATRA_COUNT_DROPPED_RATE ||
	       outcome == NATRA_COUNT_DROPPED_HORIZON;
}

/* Once in a tick. It is global for the same reason as parse_global. */
__noinline int adapt_global(struct natra_fair *fair,
			    const struct natra_span *span, __u32 fair_shift)
{
	if (!fair || !span)
		return 0; /* the verifier wants this check */
	natra_fair_adapt(fair, span, fair_shift);
	return 0;
}

/*
 * Whether the sender feels it when fq holds the packet, because its socket may
 * have so many bytes on the way and no more. A packet that is forwarded has no
 * socket here. That of a tap device, which a virtual machine's packets have, is of
 * no address family, and has no such bound.
 */
static __always_inline bool is_felt(const struct __sk_buff *skb)
{
	const struct bpf_sock *sk = skb->sk;

	return sk && sk->family != AF_UNSPEC;
}

/* Decides what becomes of a packet of a heavy flow, and charges it if it goes:
 * what is dropped has changed nothing. */
static __always_inline enum natra_counter
charge_heavy(struct __sk_buff *skb, struct natra_state *state,
	     const struct natra_limits *limits, struct packet *packet,
	     __u64 now_ns, __u64 dither, bool edt)
{
	const __u64 cost_ns =
		natra_cost_ns(&limits->rate, packet->bytes, dither);
	struct natra_fair *fair = &state->fair;
	enum natra_counter outcome = NATRA_COUNT_ADMITTED;
	struct natra_span span;
	struct natra_turn turn;
	__u64 chance;

	natra_fair_span(fair, limits, now_ns, cost_ns, edt, &span);
	if (natra_unlikely(now_ns >> NATRA_FAIR_TICK_SHIFT !=
			   NATRA_READ_ONCE(fair->tick)))
		(void)adapt_global(fair, &span, limits->fair_shift);
	natra_fair_turn(fair, state->clocks, packet->hash, &span,
			limits->fair_shift, &turn);
	chance = edt ? 0 : natra_fair_chance(limits, now_ns, turn.turn_ns);
	if (edt)
		outcome = natra_fair_hold(limits, now_ns, turn.turn_ns,
					  is_felt(skb));
	else if (chance)
		outcome = natra_fair_police(limits, now_ns, turn.turn_ns,
					    chance, bpf_get_prandom_u32());
	if (outcome == NATRA_COUNT_MARKED && !set_ce(skb))
		outcome = edt ? NATRA_COUNT_PACED : NATRA_COUNT_DROPPED_RATE;
	if (is_dropped(outcome))
		return outcome;
	natra_fair_charge(fair, &span, &turn, cost_ns);
	if (edt && turn.turn_ns > now_ns)
		hold(state, packet, now_ns, turn.turn_ns);
	return outcome;
}

static __always_inline enum natra_counter
judge(struct __sk_buff *skb, const struct natra_config *config,
      struct natra_state *state, const struct natra_tally *counts,
      struct packet *packet, bool tx, bool edt, bool subnets)
{
	struct natra_parsed_packet parsed;
	__u64 ahead_ns, dither, now_ns, tat_ns;
	const __u64 active = NATRA_READ_ONCE(config->active);
	const struct natra_limits *limits = &config->limits[active & 1];
	__u32 epoch, estimate, units;
	bool control, mouse;

	packet->now_ns = bpf_ktime_get_coarse_ns();
	/* hash_fast sets one word of an address, but is_exempt reads all
	 * four. */
	if (subnets)
		__builtin_memset(&parsed.tuple, 0, sizeof(parsed.tuple));
	control = read_packet(skb, tx, config->keys, subnets, &parsed, packet);
	if (subnets && is_exempt(&parsed.tuple))
		return NATRA_COUNT_UNLIMITED;
	if (natra_unlikely(!limits->rate.mult))
		return NATRA_COUNT_UNLIMITED;

	epoch = natra_epoch(packet->now_ns);
	units = natra_units(packet->bytes);
	estimate = natra_sketch_add(state->sketch, natra_fixed.sketch_mask,
				    packet->hash, units, epoch);
	mouse = !natra_is_heavy(state->heavy, packet->hash, estimate, units,
				limits->enter_units, limits->leave_units,
				epoch);
	/* In no mode may the pod lose its link, so these packets are not
	 * charged. */
	if (natra_unlikely(control) && (mouse || estimate < CONTROL_UNITS))
		return NATRA_COUNT_OTHER;
	if (mouse && limits->pass == NATRA_PASS_FREE)
		return NATRA_COUNT_MICE;
	mouse = mouse && limits->pass != NATRA_PASS_OFF;

	/*
	 * The clock of the last tick is never ahead: what it admits may go. The
	 * exact one costs as much as all the rest; the burst is a tick longer.
	 * Where the chance of a drop depends on the time, it must be exact.
	 */
	now_ns = packet->now_ns;
	if (natra_unlikely(NATRA_READ_ONCE(state->settled) != active))
		settle(state, active, now_ns + debt_limit(limits, edt));
	tat_ns = NATRA_READ_ONCE(state->fair.tat_ns);
	ahead_ns = edt ? 0 : limits->rate.burst_ns >> NATRA_FAIR_SAFE_SHIFT;
	if (mouse || tat_ns + ahead_ns > now_ns)
		now_ns = bpf_ktime_get_ns();
	/* tat_ns alone would stay the same once the dither has made a cost 0. */
	dither = natra_dither(tat_ns +
			      (counts[NATRA_COUNT_ADMITTED].packets << 32));
	if (natra_unlikely(mouse))
		return charge_mouse(skb, state, limits, packet, now_ns, dither,
				    edt);
	note_flow(skb, state, &parsed, packet, now_ns);
	return charge_heavy(skb, state, limits, packet, now_ns, dither, edt);
}

/*
 * Adds n to a counter. Programs run with bottom halves off and do not move to
 * another CPU, so a stripe that one CPU uses has one writer. (On a real-time
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

static __always_inline int shape(struct __sk_buff *skb, struct packet *packet,
				 bool tx, bool edt, bool subnets)
{
	const __u32 slot = skb->cb[0];
	const struct natra_config *config;
	enum natra_counter outcome;
	struct natra_state *state;
	struct natra_tally *counts;

	config = bpf_map_lookup_elem(&natra_configs, &slot);
	state = bpf_map_lookup_elem(&natra_states, &slot);
	if (!config || !state)
		return PASS; /* for the verifier: stubs give what there is */
	counts = state->stripes[bpf_get_smp_processor_id() % NATRA_STRIPES];
	outcome = judge(skb, config, state, counts, packet, tx, edt, subnets);
	/* One copy of what follows, not one for each outcome. */
	asm volatile("" : "+r"(outcome));
	add(&counts[outcome].packets, 1);
	add(&counts[outcome].bytes, packet->bytes);
	return is_dropped(outcome) ? DROP : PASS;
}

SEC("tc")
int natra_rx(struct __sk_buff *skb)
{
	struct packet packet = {};

	return shape(skb, &packet, false, false, false);
}

SEC("tc")
int natra_rx_nets(struct __sk_buff *skb)
{
	struct packet packet = {};

	return shape(skb, &packet, false, false, true);
}

SEC("tc")
int natra_tx(struct __sk_buff *skb)
{
	struct packet packet = {};

	return shape(skb, &packet, true, false, false);
}

SEC("tc")
int natra_tx_nets(struct __sk_buff *skb)
{
	struct packet packet = {};

	return shape(skb, &packet, true, false, true);
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
 * A stamp of CLOCK_MONOTONIC that the packet came with is a departure time,
 * from TCP or SO_TXTIME. One of another clock is not: fq would take it for a
 * time far beyond its horizon, and drop the packet.
 */
static __always_inline int pace(struct __sk_buff *skb, bool subnets)
{
	struct packet packet = {};
	int verdict = shape(skb, &packet, true, true, subnets);
	__u64 depart_ns = packet.depart_ns;
	__u64 own_ns;

	if (depart_ns)
		heed_fq(skb);
	own_ns = skb->tstamp;
	if (own_ns > depart_ns &&
	    skb->tstamp_type == BPF_SKB_TSTAMP_DELIVERY_MONO &&
	    own_ns < packet.now_ns + MAX_STAMP_NS)
		return verdict;
	if (own_ns == depart_ns)
		return verdict;
	/* The helper takes IP only; a tag in the frame makes it something else. */
	if (bpf_skb_set_tstamp(skb, depart_ns,
			       depart_ns ? BPF_SKB_TSTAMP_DELIVERY_MONO
					 : BPF_SKB_TSTAMP_UNSPEC) < 0)
		skb->tstamp = depart_ns;
	return verdict;
}

SEC("tc")
int natra_edt(struct __sk_buff *skb)
{
	return pace(skb, false);
}

SEC("tc")
int natra_edt_nets(struct __sk_buff *skb)
{
	return pace(skb, true);
}
