// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * The shaper. natra_rx polices where an interface receives (its tc ingress
 * hook), natra_tx where it sends (tc egress), and natra_edt paces there, with
 * fq below it. Which of them serves the pod's ingress depends on the side on
 * which it is attached.
 *
 * The object is loaded once for each direction, with one of the programs and
 * maps of its own.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#define NATRA_LOAD(ctx, offset, to, len)                                       \
	bpf_skb_load_bytes((struct __sk_buff *)(ctx), offset, to, len)

#include "natra_bucket.h"
#include "natra_classify.h"
#include "natra_compiler.h"
#include "natra_flows.h"
#include "natra_hash.h"
#include "natra_maps.bpf.h"
#include "natra_parse.h"
#include "natra_shared.h"
#include "natra_sketch.h"
#include "natra_wirelen.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* TC_ACT_UNSPEC is TCX_NEXT: what stands behind natra on the hook still runs. */
#define PASS TC_ACT_UNSPEC
#define DROP TC_ACT_SHOT

static __always_inline int count(struct natra_counters *counters,
				 enum natra_counter which, __u32 bytes,
				 int verdict)
{
	counters->count[which].packets++;
	counters->count[which].bytes += bytes;
	return verdict;
}

/* Off the fast path: what it cannot parse, and the tuple of a new flow. */
static __noinline int parse_slow(struct __sk_buff *skb,
				 struct natra_parse_result *res)
{
	__builtin_memset(res, 0, sizeof(*res));
	return natra_parse(skb, natra_has_l2, res);
}

static __noinline __u32 rx_gso_len(struct __sk_buff *skb)
{
	struct natra_parse_result res;

	parse_slow(skb, &res);
	return natra_gso_len(skb->len, skb->gso_segs, skb->gso_size,
			     res.header_len);
}

static __always_inline __u32 wire_len(struct __sk_buff *skb, bool tx)
{
	__u32 bytes;

	/*
	 * Before Linux 6.19 wire_len leaves out the headers of GSO segments at
	 * the ingress hook.
	 */
	if (tx)
		bytes = skb->wire_len;
	else if (natra_likely(!skb->gso_size))
		bytes = skb->len;
	else
		bytes = rx_gso_len(skb);

	/* A tag that the kernel keeps in the skb is not in its length. */
	if (natra_unlikely(skb->vlan_present))
		bytes += NATRA_VLAN_LEN *
			 (skb->gso_segs > 1 ? skb->gso_segs : 1);
	return bytes;
}

static __always_inline bool fast_protocol(__u8 protocol)
{
	return protocol == NATRA_PROTO_TCP || protocol == NATRA_PROTO_UDP;
}

/*
 * Direct packet access for what nearly all packets are: TCP or UDP, no VLAN
 * tag in the frame, no IP options or extension headers, no fragment. The hash
 * is the same as parse_slow's.
 */
static __always_inline bool hash_fast(struct __sk_buff *skb, __u64 *ret_hash)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	void *l3 = data + (natra_has_l2 ? NATRA_ETH_LEN : 0);
	const struct iphdr *ip4 = l3;
	const struct ipv6hdr *ip6 = l3;
	__u32 *ports;

	if (l3 + sizeof(*ip4) + sizeof(*ports) > end)
		return false;
	if (natra_has_l2) {
		__u16 type = *(__u16 *)(l3 - 2);

		if (type != natra_be16(NATRA_ETHERTYPE_IPV4) &&
		    type != natra_be16(NATRA_ETHERTYPE_IPV6))
			return false;
		/* The type and the version must tell the same. */
		if ((type == natra_be16(NATRA_ETHERTYPE_IPV4)) !=
		    (*(__u8 *)l3 >> 4 == 4))
			return false;
	}

	if (*(__u8 *)l3 == 0x45) {
		if ((ip4->frag_off & natra_be16(0x3fff)) ||
		    !fast_protocol(ip4->protocol))
			return false;
		ports = (__u32 *)(ip4 + 1);
		*ret_hash = natra_hash_v4(natra_keys, ip4->saddr, ip4->daddr,
					  *ports,
					  natra_hash_kind(4, ip4->protocol, 0));
		return true;
	}
	if (*(__u8 *)l3 >> 4 == 6) {
		if (l3 + sizeof(*ip6) + sizeof(*ports) > end ||
		    !fast_protocol(ip6->nexthdr))
			return false;
		ports = (__u32 *)(ip6 + 1);
		*ret_hash =
			natra_hash_v6(natra_keys, ip6->saddr.in6_u.u6_addr32,
				      ip6->daddr.in6_u.u6_addr32, *ports,
				      natra_hash_kind(6, ip6->nexthdr, 0));
		return true;
	}
	return false;
}

static __noinline bool hash_slow(struct __sk_buff *skb, __u64 *ret_hash)
{
	struct natra_parse_result res;

	if (parse_slow(skb, &res) == NATRA_PARSED_OTHER)
		return false;
	*ret_hash = natra_hash_tuple(natra_keys, &res.tuple);
	return true;
}

static __always_inline void note_flow(struct __sk_buff *skb, __u64 hash,
				      __u32 bytes, __u64 now_ns)
{
	__u32 now = natra_flow_now(now_ns);
	struct natra_flow_slot *slot;
	bool known;

	slot = natra_flow_find(natra_state.flows, hash, now, &known);
	if (natra_unlikely(!known)) {
		struct natra_parse_result res;

		parse_slow(skb, &res);
		natra_flow_insert(slot, hash, &res.tuple);
	}
	natra_flow_add(slot, now, bytes);
}

static __always_inline void set_departure(struct __sk_buff *skb, __u64 at_ns,
					  __u32 type)
{
	/* The helper takes IP only; a tag in the frame makes it something else. */
	if (bpf_skb_set_tstamp(skb, at_ns, type) < 0)
		skb->tstamp = at_ns;
}

/*
 * A stamp of CLOCK_MONOTONIC is a departure time. One of another clock (from
 * SO_TXTIME, or a receive stamp) is not, and fq would take it for a time far
 * beyond its horizon and drop the packet.
 */
static __always_inline void clear_foreign_stamp(struct __sk_buff *skb)
{
	if (natra_unlikely(skb->tstamp &&
			   skb->tstamp_type != BPF_SKB_TSTAMP_DELIVERY_MONO))
		set_departure(skb, 0, BPF_SKB_TSTAMP_UNSPEC);
}

/* One copy for all callers: the program's size is memory of every pod. */
static __noinline __u64 take(__u64 *tat_ns, __u64 now_ns, __u64 burst_ns,
			     __u64 cost_ns, __u64 limit_ns)
{
	return natra_bucket_take(tat_ns, now_ns, burst_ns, cost_ns, limit_ns);
}

static __always_inline int pace(struct __sk_buff *skb,
				const struct natra_limits *limits,
				struct natra_counters *counters, __u32 bytes,
				__u64 now_ns, __u64 cost_ns)
{
	enum natra_counter outcome = NATRA_COUNT_PACED;
	__u64 depart_ns;
	__u64 own_ns;

	depart_ns = take(&natra_state.tat_ns, now_ns, limits->rate.burst_ns,
			 cost_ns, limits->delay_limit_ns);
	if (depart_ns == NATRA_BUCKET_REFUSED)
		return count(counters, NATRA_COUNT_DROPPED_HORIZON, bytes,
			     DROP);
	if (depart_ns <= now_ns)
		return count(counters, NATRA_COUNT_ADMITTED, bytes, PASS);

	own_ns = skb->tstamp;
	/* Beyond what fq would hold: not a time that anybody can keep. */
	if (own_ns > depart_ns && own_ns - now_ns > limits->delay_limit_ns)
		own_ns = 0;
	if (own_ns < depart_ns) {
		counters->delay_ns_sum += depart_ns - now_ns;
		set_departure(skb, depart_ns, BPF_SKB_TSTAMP_DELIVERY_MONO);
	}
	if (depart_ns - now_ns > limits->mark_from_ns &&
	    bpf_skb_ecn_set_ce(skb))
		outcome = NATRA_COUNT_MARKED;
	return count(counters, outcome, bytes, PASS);
}

static __always_inline int police(struct __sk_buff *skb,
				  const struct natra_limits *limits,
				  struct natra_counters *counters, __u32 bytes,
				  __u64 now_ns, __u64 cost_ns)
{
	if (take(&natra_state.tat_ns, now_ns, limits->rate.burst_ns, cost_ns,
		 0) != NATRA_BUCKET_REFUSED)
		return count(counters, NATRA_COUNT_ADMITTED, bytes, PASS);
	/*
	 * Marks overdraw the bucket up to a limit: a sender that sets ECT and
	 * ignores CE must not get past the rate.
	 */
	if (bpf_skb_ecn_set_ce(skb) == 1 &&
	    take(&natra_state.tat_ns, now_ns, limits->rate.burst_ns, cost_ns,
		 limits->delay_limit_ns) != NATRA_BUCKET_REFUSED)
		return count(counters, NATRA_COUNT_MARKED, bytes, PASS);
	return count(counters, NATRA_COUNT_DROPPED_RATE, bytes, DROP);
}

/* With NATRA_PASS_CHARGED: true if the mouse still fits in the mice's share. */
static __noinline bool charge_mouse(const struct natra_limits *limits,
				    __u32 bytes)
{
	__u64 now_ns = bpf_ktime_get_ns();

	if (take(&natra_state.mice_tat_ns, now_ns, limits->mice.burst_ns,
		 natra_cost_ns(&limits->mice, bytes),
		 0) == NATRA_BUCKET_REFUSED)
		return false;
	take(&natra_state.tat_ns, now_ns, limits->rate.burst_ns,
	     natra_cost_ns(&limits->rate, bytes), NATRA_NO_LIMIT);
	return true;
}

static __always_inline int shape(struct __sk_buff *skb, bool tx, bool edt)
{
	const struct natra_limits *limits;
	struct natra_counters *counters;
	__u64 cost_ns, hash, now_ns;
	__u32 bytes, epoch, estimate;
	__u32 zero = 0;

	counters = bpf_map_lookup_elem(&natra_counters, &zero);
	if (!counters)
		return PASS; /* for the verifier: entry 0 is always there */
	limits = &natra_config.slot[NATRA_READ_ONCE(natra_config.active) & 1];

	bytes = wire_len(skb, tx);
	if (natra_unlikely(!hash_fast(skb, &hash) && !hash_slow(skb, &hash)))
		return count(counters, NATRA_COUNT_OTHER, bytes, PASS);
	if (natra_unlikely(!limits->rate.mult))
		return count(counters, NATRA_COUNT_UNLIMITED, bytes, PASS);

	/* Windows are a second long: the clock of the last tick is enough. */
	epoch = natra_epoch(bpf_ktime_get_coarse_ns());
	estimate = natra_sketch_add(natra_sketch, natra_sketch_mask, hash,
				    natra_units(bytes), epoch);
	if (limits->pass != NATRA_PASS_OFF &&
	    !natra_is_heavy(natra_state.heavy, hash, estimate,
			    limits->enter_units, limits->leave_units, epoch)) {
		if (limits->pass == NATRA_PASS_FREE ||
		    charge_mouse(limits, bytes))
			return count(counters, NATRA_COUNT_MICE, bytes, PASS);
	}

	now_ns = bpf_ktime_get_ns();
	note_flow(skb, hash, bytes, now_ns);
	cost_ns = natra_cost_ns(&limits->rate, bytes);
	if (edt)
		return pace(skb, limits, counters, bytes, now_ns, cost_ns);
	return police(skb, limits, counters, bytes, now_ns, cost_ns);
}

SEC("tc")
int natra_rx(struct __sk_buff *skb)
{
	return shape(skb, false, false);
}

SEC("tc")
int natra_tx(struct __sk_buff *skb)
{
	return shape(skb, true, false);
}

SEC("tc")
int natra_edt(struct __sk_buff *skb)
{
	clear_foreign_stamp(skb);
	return shape(skb, true, true);
}
