/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * These translate a service's address into a pod's, on the host side of the
 * pod's veth, and back: what wired.py compares with the kernel's own
 * translation. There is one service and one pod, so nothing is looked up.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define ADDRESS(a, b, c, d) bpf_htonl((a) << 24 | (b) << 16 | (c) << 8 | (d))
/* These are SERVICE and the addresses of the first pod in wired.py. */
#define SERVICE             ADDRESS(10U, 96, 0, 10)
#define ROUTED_POD          ADDRESS(10U, 88, 10, 10)
#define BRIDGED_POD         ADDRESS(10U, 88, 0, 10)

/* Replace the address at that offset of the IP header if it is `from`. */
static __always_inline int translate(struct __sk_buff *skb, __u32 at,
				     __u32 from, __u32 to)
{
	struct iphdr ip;

	if (skb->protocol != bpf_htons(ETH_P_IP) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || ip.ihl != 5 ||
	    ip.protocol != IPPROTO_TCP ||
	    (at == offsetof(struct iphdr, saddr) ? ip.saddr : ip.daddr) != from)
		return TC_ACT_OK;
	bpf_l4_csum_replace(
		skb, ETH_HLEN + sizeof(ip) + offsetof(struct tcphdr, check),
		from, to, BPF_F_PSEUDO_HDR | sizeof(to));
	bpf_l3_csum_replace(skb, ETH_HLEN + offsetof(struct iphdr, check), from,
			    to, sizeof(to));
	bpf_skb_store_bytes(skb, ETH_HLEN + at, &to, sizeof(to), 0);
	return TC_ACT_OK;
}

/* Defines a program that translates one of the two addresses. */
#define TRANSLATES(name, address, from, to)                                    \
	SEC("tc/" #name)                                                       \
	int name(struct __sk_buff *skb)                                        \
	{                                                                      \
		return translate(skb, offsetof(struct iphdr, address), from,   \
				 to);                                          \
	}

TRANSLATES(routed_in, daddr, SERVICE, ROUTED_POD)
TRANSLATES(routed_out, saddr, ROUTED_POD, SERVICE)
TRANSLATES(bridge_in, daddr, SERVICE, BRIDGED_POD)
TRANSLATES(bridge_out, saddr, BRIDGED_POD, SERVICE)
