// SPDX-License-Identifier: BSD-2-Clause
/*
 * This is the program that per_packet.c compares natra with: it limits one
 * pod's egress as bandwidth managers in BPF do. It finds the pod's limit by
 * number in a hash map, and the departure time is the last one plus the time
 * that this packet takes. It has no flows, no burst and no counters.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "reference.h"

#define SECOND_NS 1000000000ULL

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct reference_key);
	__type(value, struct reference_limit);
} limits SEC(".maps");

SEC("tc")
int reference(struct __sk_buff *skb)
{
	struct reference_key key = {.pod = skb->queue_mapping, .egress = 1};
	__u64 now_ns, depart_ns, next_ns;
	struct reference_limit *limit;

	if (skb->protocol != bpf_htons(ETH_P_IP) &&
	    skb->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_OK;
	limit = bpf_map_lookup_elem(&limits, &key);
	if (!limit)
		return TC_ACT_OK;
	now_ns = bpf_ktime_get_ns();
	depart_ns = skb->tstamp;
	if (depart_ns < now_ns)
		depart_ns = now_ns;
	next_ns = *(volatile __u64 *)&limit->last_ns +
		  skb->wire_len * SECOND_NS / limit->bytes_per_second;
	if (next_ns <= depart_ns) {
		*(volatile __u64 *)&limit->last_ns = depart_ns;
		return TC_ACT_OK;
	}
	if (next_ns - now_ns >= limit->horizon_ns)
		return TC_ACT_SHOT;
	*(volatile __u64 *)&limit->last_ns = next_ns;
	skb->tstamp = next_ns;
	return TC_ACT_OK;
}
