/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These are another owner's programs on natra's hooks, for coexist.py. Each
 * counts the packets that it sees and then does with them what its name says:
 * it lets them go on, accepts them or sends them elsewhere. There is one for
 * each direction.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The order is that of NAMES in neighbour.py. */
enum program {
	NEXT_IN,
	NEXT_OUT,
	OK_IN,
	OK_OUT,
	REDIRECT_IN,
	REDIRECT_OUT,
	PEER_IN,
	PEER_OUT,
	PROGRAM_MAX
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROGRAM_MAX);
	__type(key, __u32);
	__type(value, __u64);
} seen SEC(".maps");

/* Redirects lead to these interface indexes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PROGRAM_MAX);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

static __always_inline __u32 count(__u32 program)
{
	__u64 *packets = bpf_map_lookup_elem(&seen, &program);
	__u32 *ifindex = bpf_map_lookup_elem(&target, &program);

	if (packets)
		__sync_fetch_and_add(packets, 1);
	return ifindex ? *ifindex : 0;
}

SEC("tc")
int next_in(struct __sk_buff *skb)
{
	count(NEXT_IN);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int next_out(struct __sk_buff *skb)
{
	count(NEXT_OUT);
	return TC_ACT_UNSPEC;
}

SEC("tc")
int ok_in(struct __sk_buff *skb)
{
	count(OK_IN);
	return TC_ACT_OK;
}

SEC("tc")
int ok_out(struct __sk_buff *skb)
{
	count(OK_OUT);
	return TC_ACT_OK;
}

SEC("tc")
int redirect_in(struct __sk_buff *skb)
{
	return bpf_redirect(count(REDIRECT_IN), BPF_F_INGRESS);
}

SEC("tc")
int redirect_out(struct __sk_buff *skb)
{
	return bpf_redirect(count(REDIRECT_OUT), 0);
}

/* This redirects from one host-side veth into the pod behind another, past the
 * host's stack. */
SEC("tc")
int peer_in(struct __sk_buff *skb)
{
	return bpf_redirect_peer(count(PEER_IN), 0);
}

SEC("tc")
int peer_out(struct __sk_buff *skb)
{
	return bpf_redirect_peer(count(PEER_OUT), 0);
}
