/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* How the programs read a packet: its flow, and its length on the wire. */
#ifndef NATRA_PACKET_BPF_H
#define NATRA_PACKET_BPF_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#define NATRA_LOAD(ctx, offset, to, len)                                       \
	load_bytes((struct __sk_buff *)(ctx), offset, to, len)
#define NATRA_INNER(ctx, ports) inner_of((struct __sk_buff *)(ctx), ports)

#include "natra_compiler.h"

/* No header that is read begins behind this offset, and the verifier demands a bound. */
#define LINEAR_MAX 0x3fffU

/* Copies bytes out of the packet, whose number the compiler knows. Headers are nearly
 * always in the linear area; a call of the helper takes as long as ten such copies. */
static __always_inline int load_bytes(struct __sk_buff *skb, __u32 offset,
				      void *to, __u32 len)
{
	__u64 begin = offset;
	const __u8 *at;
	__u32 i = 0;

	/* The compiler would compare one register and add another one that differs by
	 * a constant, between which the verifier before Linux 6.10 sees no relation. */
	asm volatile("" : "+r"(begin));
	if (begin > LINEAR_MAX)
		return bpf_skb_load_bytes(skb, offset, to, len);
	at = (void *)(long)skb->data + begin;
	if ((void *)(at + len) > (void *)(long)skb->data_end)
		return bpf_skb_load_bytes(skb, offset, to, len);
	for (; i + 4 <= len; i += 4)
		*(__u32 *)(to + i) = *(const __u32 *)(at + i);
	for (; i < len; i++)
		((__u8 *)to)[i] = at[i];
	return 0;
}

/*
 * Returns eight bits of the hash that the packet came with. What a socket sends by itself has its
 * port and none of that: its hash changes with each connect(). In a tunnel's packet there is the
 * socket of the packet inside, or none.
 */
static __always_inline __u8 inner_of(const struct __sk_buff *skb, __u32 ports)
{
	const struct bpf_sock *sk = skb->sk;
	const __u16 *source = (const __u16 *)&ports;

	if (!(skb->cb[0] & NATRA_CALL_INNER))
		return 0;
	if (sk && sk->src_port == natra_be16(*source))
		return 0;
	return (__u8)skb->hash;
}

#include "natra_hash.h"
#include "natra_maps.bpf.h"
#include "natra_parse.h"
#include "natra_shared.h"
#include "natra_tunnel.h"
#include "natra_wirelen.h"

natra_global int parse_global(struct __sk_buff *skb,
			      struct natra_parsed_packet *parsed)
{
	if (!parsed)
		return NATRA_PARSED_OTHER; /* the verifier wants this check */
	return natra_parse(skb, natra_fixed.has_l2, parsed);
}

natra_global __u64 enter_global(struct __sk_buff *skb,
				struct natra_parsed_packet *parsed)
{
	return parsed ? natra_enter(skb, parsed) : 0;
}

/* The verifier demands that memory which is passed to a global function has been
 * written before (Linux 5.15). This call writes all of it, with zeroes if the packet is
 * shorter. */
static __always_inline void write_parsed(struct __sk_buff *skb,
					 struct natra_parsed_packet *parsed)
{
	(void)bpf_skb_load_bytes(skb, 0, parsed, sizeof(*parsed));
}

/* The slow path takes it for IPv4, too. */
static __always_inline __u64 hash_v6(const __u64 *keys, const __u32 *saddr,
				     const __u32 *daddr, __u32 ports,
				     __u32 kind)
{
	return natra_hash_v6(keys, saddr, daddr, ports, kind);
}

#define NATRA_TCP_SYN          0x02
#define NATRA_TCP_RST          0x04
#define NATRA_TCP_ACK          0x10
#define NATRA_TCP_SETUP        (NATRA_TCP_SYN | NATRA_TCP_RST | NATRA_TCP_ACK)
#define NATRA_TCP_FLAGS_OFFSET 13

/* The bytes of layer 4 that hash_fast reads: the ports, where TCP's header ends, and behind that of
 * UDP, WireGuard's type. */
#define L4_FAST_LEN 13

/* Returns the version of an IP packet without a VLAN tag in the frame, or 0 (or what the
 * first bits say, without a link header) if it is none. *l3 is where it begins, and `len`
 * bytes can be read there. */
static __always_inline __u8 fast_version(const struct __sk_buff *skb, __u32 len,
					 void **l3)
{
	void *data = (void *)(long)skb->data;
	__u16 type;

	*l3 = data + (natra_fixed.has_l2 ? NATRA_ETH_LEN : 0);
	if (*l3 + len > (void *)(long)skb->data_end)
		return 0;
	if (!natra_fixed.has_l2)
		return ((const struct iphdr *)*l3)->version;
	type = *(__u16 *)(*l3 - 2);
	if (type == natra_be16(NATRA_ETHERTYPE_IPV6))
		return 6;
	return type == natra_be16(NATRA_ETHERTYPE_IPV4) ? 4 : 0;
}

/* Does what natra_parse_inner does; L4_FAST_LEN bytes can be read. */
static __always_inline __u8 inner_fast(const struct __sk_buff *skb,
				       __u8 protocol, const void *l4)
{
	const __u32 *words = l4;

	if (natra_likely(protocol != NATRA_PROTO_UDP ||
			 words[2] != NATRA_WIREGUARD_DATA))
		return 0;
	return (__u8)NATRA_FORGET(inner_of(skb, words[0]), words[2]);
}

/*
 * Hashes by direct packet access what nearly all packets are: TCP or UDP, no
 * VLAN tag in the frame, no IP options or extension headers, no fragment, no
 * tunnel's GSO packet. Returns false for all others. The hash is that of the
 * tuple which parse_global would find.
 */
static __always_inline bool hash_fast(struct __sk_buff *skb, bool tx,
				      const __u64 *keys, __u64 *ret_hash,
				      __u32 *ret_header_len)
{
	const __u32 l2_len = natra_fixed.has_l2 ? NATRA_ETH_LEN : 0;
	void *end = (void *)(long)skb->data_end;
	__u32 l3_len = sizeof(struct iphdr);
	void *l3;
	const __u8 version = fast_version(skb, l3_len + L4_FAST_LEN, &l3);
	const struct iphdr *ip4 = l3;
	const struct ipv6hdr *ip6 = l3;
	__u8 protocol;

	if (!version)
		return false;
	if (version == 4) {
		protocol = ip4->protocol;
		if (*(__u8 *)ip4 != 0x45 ||
		    (ip4->frag_off & natra_be16(0x3fff)))
			return false;
		*ret_hash = natra_hash_v4(
			keys, ip4->saddr, ip4->daddr, *(__u32 *)(ip4 + 1),
			natra_hash_kind(4, protocol, 0,
					inner_fast(skb, protocol, ip4 + 1)));
	} else {
		protocol = ip6->nexthdr;
		l3_len = sizeof(*ip6);
		if (ip6->version != 6 || l3 + sizeof(*ip6) + L4_FAST_LEN > end)
			return false;
		*ret_hash = hash_v6(
			keys, ip6->saddr.in6_u.u6_addr32,
			ip6->daddr.in6_u.u6_addr32, *(__u32 *)(ip6 + 1),
			natra_hash_kind(6, protocol, 0,
					inner_fast(skb, protocol, ip6 + 1)));
	}
	if (protocol == NATRA_PROTO_TCP) {
		*ret_header_len =
			l2_len + l3_len + (((__u8 *)l3)[l3_len + 12] >> 4) * 4U;
		return true;
	}
	*ret_header_len = l2_len + l3_len + NATRA_UDP_LEN;
	/* A packet that is sent may become fragments, which have no UDP header. */
	return protocol == NATRA_PROTO_UDP &&
	       (!skb->gso_size ||
		(!tx && !natra_is_tunnel_port(*(__u16 *)(l3 + l3_len + 2))));
}

struct packet {
	__u64 hash;
	__u64 now_ns; /* of the last tick, which is enough for windows */
	union {
		__u64 group_ns; /* from group_ask() to charge(): its turn there */
		__u64 depart_ns; /* after charge(); 0: now */
	};
	__u64 active; /* natra_config.active, by which it is judged */
	__u32 bytes;  /* on the wire */
	/* These are not bools, because before Linux 6.3 the verifier refuses to pass
	 * padding, which nobody writes, to a global function. They share a word,
	 * because there the frames of nested calls have 512 bytes together. */
	__u32 mouse : 1;
	__u32 charged : 1; /* from group_ask() on: its groups are, see take_mark() */
	__u32 seed : 30; /* of the dither: another one for each packet */
};

/* Returns false if the packet is surely no TCP segment with SYN or RST, nor a tunnel's
 * that may have one inside. It reads the same packets as hash_fast, and of all others the
 * parser must tell. */
static __always_inline bool may_connect(const struct __sk_buff *skb)
{
	void *l3;
	const __u8 version = fast_version(skb, sizeof(struct ipv6hdr), &l3);
	const struct iphdr *ip4 = l3;
	const struct ipv6hdr *ip6 = l3;
	const __u8 *l4 = l3 + sizeof(*ip4);
	__u8 protocol;

	if (version == 4) {
		protocol = ip4->protocol;
	} else if (version == 6) {
		protocol = ip6->nexthdr;
		l4 = l3 + sizeof(*ip6);
	} else {
		return true;
	}
	if (protocol != NATRA_PROTO_TCP && protocol != NATRA_PROTO_UDP)
		return natra_is_tunnel(protocol) ||
		       natra_is_extension(protocol);
	if ((version == 4 &&
	     (*(__u8 *)ip4 != 0x45 || (ip4->frag_off & natra_be16(0x3fff)))) ||
	    (void *)(l4 + NATRA_TCP_FLAGS_OFFSET + 1) >
		    (void *)(long)skb->data_end)
		return true;
	if (protocol == NATRA_PROTO_UDP)
		return natra_is_tunnel_port(*(const __u16 *)(l4 + 2));
	return l4[NATRA_TCP_FLAGS_OFFSET] & (NATRA_TCP_SYN | NATRA_TCP_RST);
}

/* Returns whether this packet is the first under the limits of natra_config.active, so that it
 * converts what was owed under others. A CPU that still has the limits before them does not. */
static __always_inline bool settles(__u64 *settled, __u64 active)
{
	const __u64 old = NATRA_READ_ONCE(*settled);

	return (__s64)(active - old) > 0 &&
	       __sync_val_compare_and_swap(settled, old, active) == old;
}

/* Returns the state of the attachment's own slot, which has what all its classes share. */
static __always_inline struct natra_state *
state_of_all(const struct __sk_buff *skb, const struct natra_config *config)
{
	const __u32 slot =
		(skb->cb[0] & NATRA_CALL_SLOT) - (__u32)config->class_number;

	return bpf_map_lookup_elem(&natra_states, &slot);
}

/* Returns the limits that are active. */
static __always_inline const struct natra_limits *
limits_of(const struct natra_config *config, __u64 active)
{
	return &config->limits[active & 1];
}

/* A tag that the kernel keeps in the skb is not in its length. */
static __always_inline __u32 tag_bytes(const struct __sk_buff *skb)
{
	return NATRA_VLAN_LEN *
	       natra_segs(skb->len, skb->gso_segs, skb->gso_size);
}

/*
 * Returns the hash of a fragment's flow, given that of its own tuple. The first one of a
 * datagram has ports, and leaves the flow where those that follow find it; one whose
 * datagram is not there is of the flow of all such between its two hosts. Datagrams are
 * told apart by their id, and push each other out of the few places: a sender's fragments
 * come in a row.
 */
natra_global __u64 datagram_global(struct __sk_buff *skb,
				   const struct natra_config *config,
				   const struct natra_parsed_packet *parsed,
				   __u64 hash)
{
	const __u32 slot = skb->cb[0] & NATRA_CALL_SLOT;
	const struct natra_tuple *t;
	struct natra_fragmented *datagram;
	struct natra_state *state;
	__u64 key;

	state = bpf_map_lookup_elem(&natra_states, &slot);
	if (!state || !config || !parsed)
		return hash; /* the verifier wants this check */
	t = &parsed->tuple;
	key = hash_v6(config->keys, t->saddr, t->daddr, parsed->fragment_id,
		      natra_hash_kind(t->version, t->protocol, 2, 0));
	datagram = &state->fragmented[key % NATRA_FRAGMENTED];
	if (!parsed->later_piece) {
		NATRA_WRITE_ONCE(datagram->hash, hash);
		NATRA_WRITE_ONCE(datagram->key, key);
	} else if (NATRA_READ_ONCE(datagram->key) == key) {
		hash = NATRA_READ_ONCE(datagram->hash);
	}
	return hash;
}

/*
 * Returns the length of a datagram's fragments or segments, which are sent. The kernel has
 * told less than what segments have. Those of IPv4 are fragments then, of which it leaves out
 * nothing. It leaves out the header of fragments over IPv6, which is as long as UDP's; the
 * first one has both.
 */
static __always_inline __u32 fragments_len(const struct natra_tuple *t,
					   __u32 len, __u32 segs, __u32 size,
					   __u32 header_len)
{
	return t->version == 6 ? natra_gso_len(len + NATRA_FRAGMENT_LEN, segs,
					       size, header_len)
			       : natra_gso_len(len, segs, size,
					       header_len - NATRA_UDP_LEN);
}

/*
 * Returns the length of all segments. What the kernel tells of those that are sent is not
 * enough: it leaves out SCTP's header, before Linux 6.18 what is inside of a tunnel, and after
 * GRO all that is behind the fixed header of IPv6. Of TCP, whose headers are all known, it may
 * tell too much: after GRO it looks for TCP's header right behind that of IPv6, and takes a
 * byte of an extension header, or of the sequence number, for its length.
 */
static __always_inline __u32 slow_gso_len(struct __sk_buff *skb, bool tx,
					  struct natra_parsed_packet *parsed)
{
	const __u32 size = skb->gso_size, segs = skb->gso_segs;
	const __u32 jumbo_len = natra_jumbo_len(parsed, skb->len);
	const __u32 inner_len =
		natra_tunnel_len(skb, enter_global(skb, parsed), size, parsed);
	const __u32 header_len = parsed->header_len + inner_len - jumbo_len;
	const __u32 len = skb->len - jumbo_len;
	__u32 bytes, told;

	if (!inner_len && natra_gave_up(parsed))
		bytes = natra_hidden_len(len, segs, size, header_len);
	else
		bytes = natra_gso_len(len, segs, size, header_len);
	if (!tx || parsed->tuple.protocol == NATRA_PROTO_TCP)
		return bytes;
	told = natra_told_len(len, skb->wire_len);
	if (bytes > told && !inner_len &&
	    parsed->tuple.protocol == NATRA_PROTO_UDP)
		bytes = fragments_len(&parsed->tuple, len, segs, size,
				      header_len);
	return natra_told_len(bytes, told);
}

/*
 * Reads a packet that hash_fast cannot. It does all that such a packet needs, because
 * the verifier walks what follows a call once for each way to it.
 */
natra_global int read_slow_global(struct __sk_buff *skb,
				  const struct natra_config *config,
				  struct natra_parsed_packet *parsed,
				  struct packet *packet, bool tx)
{
	const struct natra_tuple *t;
	int kind;

	if (!config || !parsed || !packet)
		return 0; /* the verifier wants this check */
	kind = parse_global(skb, parsed);
	t = &parsed->tuple;
	packet->hash = hash_v6(config->keys, t->saddr, t->daddr, t->ports,
			       natra_hash_kind(t->version, t->protocol,
					       t->fragment, t->inner));
	if (t->fragment)
		packet->hash =
			datagram_global(skb, config, parsed, packet->hash);
	packet->bytes =
		skb->gso_size ? slow_gso_len(skb, tx, parsed) : skb->len;
	return kind == NATRA_PARSED_CONTROL;
}

/* Reads the packet into *ret. Returns true if the link itself may depend on the
 * packet, which is then no data of the pod. */
static __always_inline bool read_packet(struct __sk_buff *skb, bool tx,
					const struct natra_config *config,
					struct natra_parsed_packet *parsed,
					struct packet *ret)
{
	__u32 bytes, header_len;
	__u64 control = 0, hash;

	if (natra_unlikely(
		    !hash_fast(skb, tx, config->keys, &hash, &header_len))) {
		write_parsed(skb, parsed);
		control = (__u32)read_slow_global(skb, config, parsed, ret, tx);
		hash = ret->hash;
		bytes = ret->bytes;
	} else {
		/* At the ingress hook wire_len leaves out the headers of GSO
		 * segments before Linux 6.19. */
		bytes = natra_gso_len(skb->len, skb->gso_segs, skb->gso_size,
				      header_len);
		if (tx)
			bytes = natra_told_len(bytes, skb->wire_len);
	}
	if (natra_unlikely(skb->vlan_present))
		bytes += tag_bytes(skb);
	ret->hash = hash;
	ret->bytes = bytes;
	return NATRA_FORGET(control, hash);
}

/* Returns whether a packet that has so much more on the wire than its length was crafted. */
static __always_inline bool is_crafted(struct __sk_buff *skb,
				       struct natra_parsed_packet *parsed,
				       const struct packet *packet)
{
	write_parsed(skb, parsed);
	(void)parse_global(skb, parsed);
	return natra_is_crafted(packet->bytes, skb->len,
				parsed->tuple.protocol == NATRA_PROTO_TCP);
}

#endif
