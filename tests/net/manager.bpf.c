/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This makes the calls of Cilium's bandwidth manager (1.18.3, bpf/lib/edt.h and token_bucket.h) at
 * its hooks, for manager.py: what a pod sends gets the pod's number, and out of the node the departure
 * time of `reference`; what comes into the node passes a bucket with a second of the rate.
 */
#include "../bpf/reference.bpf.c"

#define POD 1

struct bucket {
	__u64 bytes_per_second; /* 0: no limit */
	__u64 last_ns;
	__u64 tokens;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bucket);
} bucket SEC(".maps");

/* Of the host side of the pod's interface. */
SEC("tc")
int cil_from_container(struct __sk_buff *skb)
{
	skb->queue_mapping = POD;
	return TC_ACT_OK;
}

/* Of the node's own interface. */
SEC("tc")
int cil_from_netdev(struct __sk_buff *skb)
{
	const __u64 now_ns = bpf_ktime_get_ns();
	const __u32 first = 0;
	struct bucket *b = bpf_map_lookup_elem(&bucket, &first);
	__u64 tokens;
	int ret = TC_ACT_OK;

	if (!b || !b->bytes_per_second)
		return TC_ACT_OK;
	tokens = b->tokens +
		 b->bytes_per_second * (now_ns - b->last_ns) / SECOND_NS;
	if (tokens > b->bytes_per_second)
		tokens = b->bytes_per_second;
	if (tokens >= skb->wire_len)
		tokens -= skb->wire_len;
	else
		ret = TC_ACT_SHOT;
	b->last_ns = now_ns;
	b->tokens = tokens;
	return ret;
}
