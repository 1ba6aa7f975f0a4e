/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The general packet parser: flow identity and header length of anything that
 * can carry IP. It reads through NATRA_LOAD only, which the includer defines,
 * so headers may sit outside the linear area and host tests can feed bytes.
 *
 *   int NATRA_LOAD(ctx, offset, to, len)   0 or negative
 *
 * What claims to be IP and cannot be parsed, or hides behind more than two
 * VLAN tags, is one flow of its own: nothing that may be IP gets past.
 */
#ifndef NATRA_PARSE_H
#define NATRA_PARSE_H

#include "natra_compiler.h"
#include "natra_hash.h"

#define NATRA_ETH_LEN             14
#define NATRA_MAX_VLAN_TAGS       2
#define NATRA_MAX_IPV6_EXTENSIONS 4

#define NATRA_ETHERTYPE_IPV4   0x0800
#define NATRA_ETHERTYPE_IPV6   0x86dd
#define NATRA_ETHERTYPE_8021Q  0x8100
#define NATRA_ETHERTYPE_8021AD 0x88a8

/* IANA protocol numbers. */
#define NATRA_PROTO_HOPOPTS  0
#define NATRA_PROTO_ICMP     1
#define NATRA_PROTO_TCP      6
#define NATRA_PROTO_UDP      17
#define NATRA_PROTO_ROUTING  43
#define NATRA_PROTO_FRAGMENT 44
#define NATRA_PROTO_AH       51
#define NATRA_PROTO_ICMPV6   58
#define NATRA_PROTO_DSTOPTS  60
#define NATRA_PROTO_DCCP     33
#define NATRA_PROTO_SCTP     132
#define NATRA_PROTO_UDPLITE  136

enum natra_parsed {
	NATRA_PARSED_IP,     /* the tuple is filled in */
	NATRA_PARSED_OPAQUE, /* may be IP, the tuple is all zero */
	NATRA_PARSED_OTHER,  /* not IP */
};

struct natra_parse_result {
	struct natra_tuple tuple;
	__u32 header_len; /* layers 2 to 4, as far as they are known */
};

natra_inline bool natra_has_ports(__u8 protocol)
{
	return protocol == NATRA_PROTO_TCP || protocol == NATRA_PROTO_UDP ||
	       protocol == NATRA_PROTO_SCTP ||
	       protocol == NATRA_PROTO_UDPLITE || protocol == NATRA_PROTO_DCCP;
}

natra_inline bool natra_is_vlan(__u16 ethertype)
{
	return ethertype == NATRA_ETHERTYPE_8021Q ||
	       ethertype == NATRA_ETHERTYPE_8021AD;
}

/* Length of the layer 4 header at `offset`, for the wire length of GSO. */
natra_inline __u32 natra_l4_len(void *ctx, __u32 offset, __u8 protocol)
{
	__u8 data_offset = 0;

	switch (protocol) {
	case NATRA_PROTO_TCP:
		if (NATRA_LOAD(ctx, offset + 12, &data_offset, 1) < 0)
			return 20;
		return (data_offset >> 4) * 4;
	case NATRA_PROTO_UDP:
	case NATRA_PROTO_UDPLITE:
		return 8;
	case NATRA_PROTO_SCTP:
		return 12;
	default:
		return 0;
	}
}

/* The ports, or what stands for them, and the end of the layer 4 header. */
natra_inline void natra_parse_l4(void *ctx, __u32 offset,
				 struct natra_parse_result *res)
{
	struct natra_tuple *t = &res->tuple;
	__u16 icmp[3];

	res->header_len = offset;
	if (t->fragment)
		return;

	if (natra_has_ports(t->protocol)) {
		if (NATRA_LOAD(ctx, offset, &t->ports, 4) < 0)
			t->ports = 0;
	} else if (t->protocol == NATRA_PROTO_ICMP ||
		   t->protocol == NATRA_PROTO_ICMPV6) {
		__u8 type;

		/* Echo has an identifier in place of a port. */
		if (NATRA_LOAD(ctx, offset, icmp, sizeof(icmp)) < 0)
			return;
		type = *(__u8 *)icmp;
		if (type == 0 || type == 8 || type == 128 || type == 129)
			t->ports = icmp[2];
	}
	res->header_len += natra_l4_len(ctx, offset, t->protocol);
}

/* Returns the offset of layer 4, or 0: not a valid header. */
natra_inline __u32 natra_parse_ipv4(void *ctx, __u32 offset,
				    struct natra_tuple *t)
{
	__u32 ip[5];
	const __u8 *byte = (const __u8 *)ip;
	const __u16 *half = (const __u16 *)ip;

	if (NATRA_LOAD(ctx, offset, ip, sizeof(ip)) < 0 || byte[0] >> 4 != 4 ||
	    (byte[0] & 0xf) < 5)
		return 0;

	t->version = 4;
	t->protocol = byte[9];
	t->saddr[0] = ip[3];
	t->daddr[0] = ip[4];
	/* More fragments, or an offset: ports are in the first piece only. */
	if (half[3] & natra_be16(0x3fff)) {
		t->fragment = 1;
		t->ports = half[2];
	}
	return offset + (byte[0] & 0xf) * 4U;
}

/* The same; past at most NATRA_MAX_IPV6_EXTENSIONS extension headers. */
natra_inline __u32 natra_parse_ipv6(void *ctx, __u32 offset,
				    struct natra_tuple *t)
{
	__u32 ip[10];
	__u32 ext[2];
	const __u8 *byte = (const __u8 *)ip;
	__u8 next;

	if (NATRA_LOAD(ctx, offset, ip, sizeof(ip)) < 0 || byte[0] >> 4 != 6)
		return 0;

	t->version = 6;
	__builtin_memcpy(t->saddr, &ip[2], 16);
	__builtin_memcpy(t->daddr, &ip[6], 16);
	next = byte[6];
	offset += sizeof(ip);

	byte = (const __u8 *)ext;
#pragma GCC unroll 1
	for (int i = 0; i < NATRA_MAX_IPV6_EXTENSIONS; i++) {
		__u32 len;

		if (next != NATRA_PROTO_HOPOPTS &&
		    next != NATRA_PROTO_ROUTING &&
		    next != NATRA_PROTO_DSTOPTS && next != NATRA_PROTO_AH &&
		    next != NATRA_PROTO_FRAGMENT)
			break;
		if (NATRA_LOAD(ctx, offset, ext, sizeof(ext)) < 0)
			break;
		len = (byte[1] + 1U) * 8;
		if (next == NATRA_PROTO_AH)
			len = (byte[1] + 2U) * 4;
		if (next == NATRA_PROTO_FRAGMENT) {
			len = 8;
			/* An atomic fragment is a whole packet (RFC 6946). */
			if (((const __u16 *)ext)[1] & natra_be16(0xfff9)) {
				t->fragment = 1;
				t->ports = ext[1];
			}
		}
		offset += len;
		next = byte[0];
		if (t->fragment)
			break;
	}
	t->protocol = next;
	return offset;
}

/*
 * Reads the Ethernet header and its VLAN tags. Returns the type of what
 * follows them, moves *offset there; 0: not to be told.
 *
 * The type in the frame decides, not skb->protocol, which a pod with a packet
 * socket may set to anything.
 */
natra_inline __u16 natra_parse_ethernet(void *ctx, __u32 *offset)
{
	__u16 type = 0;

	*offset = NATRA_ETH_LEN;
	if (NATRA_LOAD(ctx, NATRA_ETH_LEN - 2, &type, 2) < 0)
		return 0;
#pragma GCC unroll 1
	for (int i = 0; i < NATRA_MAX_VLAN_TAGS; i++) {
		if (!natra_is_vlan(natra_be16(type)))
			break;
		if (NATRA_LOAD(ctx, *offset + 2, &type, 2) < 0)
			break;
		*offset += 4;
	}
	return natra_be16(type);
}

/* has_l2: the device has an Ethernet header; else the packet begins with IP. */
natra_inline int natra_parse(void *ctx, bool has_l2,
			     struct natra_parse_result *res)
{
	__u32 offset = 0;
	__u16 type = 0;
	__u8 first = 0;

	if (has_l2) {
		type = natra_parse_ethernet(ctx, &offset);
	} else if (NATRA_LOAD(ctx, 0, &first, 1) == 0) {
		if (first >> 4 == 4)
			type = NATRA_ETHERTYPE_IPV4;
		else if (first >> 4 == 6)
			type = NATRA_ETHERTYPE_IPV6;
	}

	if (type == NATRA_ETHERTYPE_IPV4)
		offset = natra_parse_ipv4(ctx, offset, &res->tuple);
	else if (type == NATRA_ETHERTYPE_IPV6)
		offset = natra_parse_ipv6(ctx, offset, &res->tuple);
	else
		return natra_is_vlan(type) ? NATRA_PARSED_OPAQUE
					   : NATRA_PARSED_OTHER;
	if (!offset)
		return NATRA_PARSED_OPAQUE;
	natra_parse_l4(ctx, offset, res);
	return NATRA_PARSED_IP;
}

#endif
