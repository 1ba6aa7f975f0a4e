/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Classes of peers: an attachment that has some takes a slot for each, behind its own
 * one, which is that of all other peers. The stub calls natra_classes, a small program
 * that finds the packet's class, adds the number of the class to that of the slot, and
 * goes on to natra_shape. That one knows nothing of classes, so each has what an
 * attachment has: limits, fair shares, flows, events and counters of its own. An
 * attachment without classes has no such program, and its packets no other way.
 *
 * The other end's address decides, by the longest prefix in the attachment's trie. A
 * packet whose peer is in no prefix may be in a class by its DSCP, for which the trie
 * has entries of another version. It is this order because a pod chooses the DSCP of
 * what it sends. What has no address is in no class. What may hide one from natra and not
 * from hosts, behind more VLAN tags than the parser reads, is dropped: in no class it might
 * have more than in its own.
 *
 * Peers that are exempt are a class as well, which has no slot, because no limits and no
 * state of its own are needed: its packets count as unlimited in the attachment's own
 * slot. The peers in shaped subnets are in no class, and all others are exempt by an
 * entry for any DSCP.
 */
#ifndef NATRA_CLASSES_BPF_H
#define NATRA_CLASSES_BPF_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#include "natra_maps.bpf.h"
#include "natra_packet.bpf.h"
#include "natra_parse.h"
#include "natra_shared.h"

/* The program reads this many bytes of an IP header at once, which is all of IPv4 but
 * its options. */
#define CLASS_IP_LEN 20

/* The prefixes of one attachment, see natra_subnet, and the numbers of their classes
 * from 1 on. User space changes them while programs run. */
struct natra_class_trie {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(struct natra_subnet));
	__uint(value_size, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
};

/* The tries, by the attachments' own slots. This map and the next one are made only
 * for banks of attachments with classes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__array(values, struct natra_class_trie);
} natra_tries SEC(".maps");

/* Its only entry is natra_shape. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} natra_next SEC(".maps");

/* Reads the other end's address and the DSCP. Returns false if there are none, and sets
 * *hidden if they are not found. */
static __always_inline bool read_peer(struct __sk_buff *skb,
				      struct natra_subnet *peer, __u32 *dscp,
				      bool *hidden)
{
	struct natra_parsed_packet parsed;
	__u8 *ip = (__u8 *)parsed.raw;
	const bool to = skb->cb[0] & NATRA_CALL_PEER_TO;
	__u32 offset = 0;
	__u16 type = 0;

	if (natra_fixed.has_l2)
		type = natra_parse_ethernet(skb, &offset, &parsed);
	*hidden = natra_is_vlan(type);
	if (bpf_skb_load_bytes(skb, offset, ip, CLASS_IP_LEN) < 0)
		return false;
	peer->version = ip[0] >> 4;
	if (peer->version == 4 &&
	    (!natra_fixed.has_l2 || type == NATRA_ETHERTYPE_IPV4)) {
		*dscp = ip[1] >> 2;
		peer->addr[0] = parsed.raw[to ? 4 : 3];
		return true;
	}
	if (peer->version == 6 &&
	    (!natra_fixed.has_l2 || type == NATRA_ETHERTYPE_IPV6)) {
		*dscp = (ip[0] & 0xfU) << 2 | ip[1] >> 6;
		return bpf_skb_load_bytes(skb, offset + (to ? 24 : 8),
					  peer->addr, 16) == 0;
	}
	return false;
}

/* Returns whether the attachment of this slot has classes with slots, which follow its
 * own. */
static __always_inline bool has_class(__u32 slot)
{
	const struct natra_config *config;

	slot++;
	config = bpf_map_lookup_elem(&natra_configs, &slot);
	return config && config->owner && config->class_number == 1;
}

/* Returns the number of the packet's class, 0 if it is in none, or NATRA_CLASS_EXEMPT. */
static __always_inline __u32 find_class(struct __sk_buff *skb, void *trie,
					bool *hidden)
{
	struct natra_subnet peer;
	__u32 dscp = 0;
	__u8 *number;

	/* An initialiser would be copied from .rodata, which is natra_fixed alone. */
	__builtin_memset(&peer, 0, sizeof(peer));
	peer.prefix_bits = NATRA_SUBNET_BITS_MAX;
	if (!read_peer(skb, &peer, &dscp, hidden))
		return 0;
	number = bpf_map_lookup_elem(trie, &peer);
	if (!number) {
		__builtin_memset(peer.addr, 0, sizeof(peer.addr));
		peer.version = NATRA_SUBNET_DSCP;
		peer.addr[0] = dscp;
		number = bpf_map_lookup_elem(trie, &peer);
	}
	return number ? *number : 0;
}

SEC("tc")
int natra_classes(struct __sk_buff *skb)
{
	const __u32 slot = skb->cb[0] & NATRA_CALL_SLOT;
	void *trie = bpf_map_lookup_elem(&natra_tries, &slot);
	bool hidden = false;
	const __u32 class = trie ? find_class(skb, trie, &hidden) : 0;

	skb->cb[0] += class == NATRA_CLASS_EXEMPT ? NATRA_CALL_EXEMPT : class;
	if (natra_unlikely(hidden) && has_class(slot))
		skb->cb[0] |= NATRA_CALL_HIDDEN;
	bpf_tail_call(skb, &natra_next, 0);
	return TC_ACT_UNSPEC; /* the bank is being removed */
}

#endif
