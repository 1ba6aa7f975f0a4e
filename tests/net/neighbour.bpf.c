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

/* Defines a program that counts a packet, whose `verdict` can be a redirect `to` its interface. */
#define COUNTS(name, number, verdict)                                          \
	SEC("tc")                                                              \
	int name(struct __sk_buff *skb)                                        \
	{                                                                      \
		const __u32 to = count(number);                                \
                                                                               \
		(void)to;                                                      \
		return verdict;                                                \
	}

COUNTS(next_in, NEXT_IN, TC_ACT_UNSPEC)
COUNTS(next_out, NEXT_OUT, TC_ACT_UNSPEC)
COUNTS(ok_in, OK_IN, TC_ACT_OK)
COUNTS(ok_out, OK_OUT, TC_ACT_OK)
COUNTS(redirect_in, REDIRECT_IN, bpf_redirect(to, BPF_F_INGRESS))
COUNTS(redirect_out, REDIRECT_OUT, bpf_redirect(to, 0))
/* These redirect from one host-side veth into the pod behind another, past the host's stack. */
COUNTS(peer_in, PEER_IN, bpf_redirect_peer(to, 0))
COUNTS(peer_out, PEER_OUT, bpf_redirect_peer(to, 0))
