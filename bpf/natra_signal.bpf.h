/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* These functions decide whether the sender of a packet that is held hears of its queue, by a
 * mark or a drop. */
#ifndef NATRA_SIGNAL_BPF_H
#define NATRA_SIGNAL_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "natra_compiler.h"
#include "natra_fair.h"
#include "natra_maps.bpf.h"
#include "natra_parse.h"
#include "natra_shared.h"

/* sys/socket.h is of the C library */
#define AF_UNSPEC 0
#define SOCK_RAW  3

/* The values of the ECN field, RFC 3168 and 9331. */
#define ECN_NOT_ECT 0
#define ECN_ECT_1   1
#define ECN_ECT_0   2
#define ECN_CE      3

/* Returns the packet's ECN bits, or ECT(0) if they cannot be read here. */
static __always_inline __u32 ecn_of(const struct __sk_buff *skb)
{
	const __u8 *ip = (void *)(long)skb->data;
	__u32 shift = 0;

	if (skb->protocol == natra_be16(NATRA_ETHERTYPE_IPV6))
		shift = 4;
	else if (skb->protocol != natra_be16(NATRA_ETHERTYPE_IPV4))
		return ECN_NOT_ECT;
	if (natra_fixed.has_l2)
		ip += NATRA_ETH_LEN;
	if ((void *)(ip + 2) > (void *)(long)skb->data_end)
		return ECN_ECT_0;
	return (ip[1] >> shift) & ECN_CE;
}

/*
 * Marks the packet if it is ECN-capable. The helper writes at the network header, which
 * for a frame with a VLAN tag inside is that tag. It is not called for packets that say
 * by their second byte that they cannot be marked: most of those that come here cannot,
 * and dropping one would cost a tenth more.
 */
static __always_inline bool set_ce(struct __sk_buff *skb)
{
	return ecn_of(skb) && bpf_skb_ecn_set_ce(skb) == 1;
}

/* Returns the socket that is charged for the packet's bytes; NULL if none is, as for a SYN-ACK. */
static __always_inline const struct bpf_sock *
socket_of(const struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;

	return sk ? bpf_sk_fullsock(sk) : NULL;
}

/*
 * Returns whether fq puts backpressure on the sender by holding the packet, because its
 * socket may have only so many bytes in flight. A packet that is forwarded has no
 * socket here. That of a tap device, which a virtual machine's packets have, is of no
 * address family, and has no such bound. What goes into a pod from the same node or bridge may
 * have a socket, whose owner is none that this pod's queue should be long for.
 */
static __always_inline bool is_felt(const struct __sk_buff *skb)
{
	const struct bpf_sock *sk = socket_of(skb);

	return (skb->cb[0] & NATRA_CALL_PEER_TO) && sk &&
	       sk->family != AF_UNSPEC;
}

/* Returns whether the sender is a TCP of this machine. A packet of its that is dropped here
 * is not lost: the sender is told at once, reduces its window, and sends the packet later. */
static __always_inline bool is_local_tcp(const struct __sk_buff *skb)
{
	const struct bpf_sock *sk = socket_of(skb);

	return sk && sk->protocol == NATRA_PROTO_TCP;
}

/*
 * Returns whether the packet must not be held, because others than those who have this queue would
 * wait for its socket. The kernel's ICMP and TCP answers, such as echo replies and resets, have a
 * socket for each CPU, which all network namespaces share since Linux 5.18: while fq holds as much
 * of it as it may have in flight, no pod of the node gives an answer, nor tells the sender of a
 * packet that it is too long. A user's raw socket of these protocols looks the same. What goes into
 * a pod may come from a server's socket on the node or on the same bridge, which has other clients;
 * a connection of TCP has none.
 */
static __always_inline bool has_other_peers(const struct __sk_buff *skb)
{
	const struct bpf_sock *sk = socket_of(skb);

	if (!sk || sk->family == AF_UNSPEC)
		return false;
	if (sk->type == SOCK_RAW && (sk->protocol == NATRA_PROTO_ICMP ||
				     sk->protocol == NATRA_PROTO_ICMPV6 ||
				     sk->protocol == NATRA_PROTO_TCP))
		return true;
	return !(skb->cb[0] & NATRA_CALL_PEER_TO) &&
	       sk->protocol != NATRA_PROTO_TCP;
}

/*
 * Marks or drops a packet of a heavy flow by chance if it is to wait for longer than the
 * target. Where it waits for its group, all members' packets are before it, and not only
 * those of its flow: the target is then half of the longest delay, and k_more is NO_FLOW.
 */
#define NO_FLOW ((__u32)-1)

natra_global int signal_global(struct __sk_buff *skb,
			       const struct natra_limits *limits, __u64 cost_ns,
			       __u64 delay_ns, __u32 k_more)
{
	const bool felt = is_felt(skb), of_flow = k_more != NO_FLOW;
	__u32 ecn = ecn_of(skb);
	__u32 bytes = NATRA_FAIR_LONG_BYTES, most = NATRA_FAIR_WHOLE;
	__u64 target_ns;

	if (!limits)
		return NATRA_COUNT_PACED; /* the verifier wants this check */
	if (has_other_peers(skb))
		return NATRA_COUNT_DROPPED_RATE;
	if (of_flow && ecn == ECN_ECT_1) {
		if (!natra_fair_signals_l4s(limits, k_more, cost_ns, delay_ns,
					    bpf_get_prandom_u32()))
			return NATRA_COUNT_PACED;
		if (set_ce(skb))
			return NATRA_COUNT_MARKED;
		/* A loss says more than such a mark. */
		ecn = ECN_NOT_ECT;
	}
	target_ns = of_flow ? natra_fair_target(limits, k_more, cost_ns, felt)
			    : natra_fair_longest(limits, felt) / 2;
	if (delay_ns <= target_ns || ecn == ECN_CE)
		return NATRA_COUNT_PACED;
	/* A tunnel's packet may have the socket of the TCP inside, which does not hear
	 * of a drop then. */
	if (ecn == ECN_NOT_ECT) {
		bytes = skb->len;
		if (felt && !is_local_tcp(skb))
			most = NATRA_FAIR_SPARE;
	}
	/* The queue for a group's turn is that of all members. */
	if (!natra_fair_signals(delay_ns - target_ns, felt || !of_flow, most,
				bytes, bpf_get_prandom_u32()))
		return NATRA_COUNT_PACED;
	return ecn && set_ce(skb) ? NATRA_COUNT_MARKED
				  : NATRA_COUNT_DROPPED_RATE;
}

#endif
