/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The general packet parser: flow identity and header length of anything that
 * can carry IP. It reads through NATRA_LOAD only, which the includer defines,
 * so headers may sit outside the linear area and host tests can feed bytes.
 *
 *   int NATRA_LOAD(ctx, offset, to, len)   0 or negative
 *   __u8 NATRA_INNER(ctx, ports)           tells flows inside of a tunnel apart
 *
 * All packets that claim to be IP and cannot be parsed, or that hide behind
 * more than two VLAN tags, are one flow together. The packets of each other
 * EtherType are one flow, too: nothing gets past the limits, whatever it
 * carries.
 */
#ifndef NATRA_PARSE_H
#define NATRA_PARSE_H

#include "natra_compiler.h"
#include "natra_hash.h"

#define NATRA_ETH_LEN             14
#define NATRA_MAC_LEN             6
#define NATRA_UDP_LEN             8
#define NATRA_FRAGMENT_LEN        8
#define NATRA_MAX_VLAN_TAGS       2
#define NATRA_MAX_IPV6_EXTENSIONS 4
/* The hop-by-hop header that BIG TCP puts into a packet of over 64 kB: what follows it and
 * its own length, then the type and the length of its option. */
#define NATRA_JUMBO_LEN           8U
#define NATRA_JUMBO_FIRST         (NATRA_PROTO_TCP << 8)
#define NATRA_JUMBO_OPTION        0xc204
/* No shorter packet with it loses it: its IPv6 packet has over 64 kB, and Ethernet's header
 * and two tags are in front of that. */
#define NATRA_JUMBO_MIN           (65536U + NATRA_ETH_LEN + 2 * 4)

/* The types of ICMPv6 that are neighbour discovery, from the solicitation of routers to
 * the redirect. */
#define NATRA_DISCOVERY_FIRST 133
#define NATRA_DISCOVERY_LAST  137

#define NATRA_ETHERTYPE_IPV4   0x0800
#define NATRA_ETHERTYPE_IPV6   0x86dd
#define NATRA_ETHERTYPE_8021Q  0x8100
#define NATRA_ETHERTYPE_8021AD 0x88a8
#define NATRA_ETHERTYPE_ARP    0x0806
#define NATRA_ETHERTYPE_SLOW   0x8809 /* LACP */
#define NATRA_ETHERTYPE_EAPOL  0x888e
#define NATRA_ETHERTYPE_LLDP   0x88cc
#define NATRA_ETHERTYPE_TEB    0x6558 /* a frame inside of a tunnel */
#define NATRA_ETHERTYPE_MPLS   0x8847
#define NATRA_ETHERTYPE_MPLS_M 0x8848 /* multicast */
#define NATRA_ETHERTYPE_PPPOE  0x8864
/* A smaller number in the place of the EtherType is a length: the frame is one
 * of IEEE 802.3 with LLC, such as STP sends. */
#define NATRA_ETHERTYPE_MIN    0x0600
/* Stands in the tuple for all frames that have a length there. */
#define NATRA_ETHERTYPE_LLC    1

/* IANA protocol numbers. */
#define NATRA_PROTO_HOPOPTS  0
#define NATRA_PROTO_ICMP     1
#define NATRA_PROTO_IPIP     4
#define NATRA_PROTO_TCP      6
#define NATRA_PROTO_UDP      17
#define NATRA_PROTO_IPV6     41
#define NATRA_PROTO_ROUTING  43
#define NATRA_PROTO_FRAGMENT 44
#define NATRA_PROTO_GRE      47
#define NATRA_PROTO_AH       51
#define NATRA_PROTO_ICMPV6   58
#define NATRA_PROTO_DSTOPTS  60
#define NATRA_PROTO_DCCP     33
#define NATRA_PROTO_SCTP     132
#define NATRA_PROTO_UDPLITE  136

enum natra_parsed {
	NATRA_PARSED_IP,      /* the tuple is filled in */
	NATRA_PARSED_OPAQUE,  /* may be IP, the tuple is all zero */
	NATRA_PARSED_OTHER,   /* not IP: the tuple has the EtherType alone */
	NATRA_PARSED_CONTROL, /* either: the link may depend on it */
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
natra_inline __u32 natra_l4_len(void *ctx, __u32 offset, __u8 protocol,
				struct natra_parsed_packet *p)
{
	switch (protocol) {
	case NATRA_PROTO_TCP:
		if (NATRA_LOAD(ctx, offset + 12, p->raw, 1) < 0)
			return 20;
		return (*(const __u8 *)p->raw >> 4) * 4;
	case NATRA_PROTO_UDP:
		return NATRA_UDP_LEN;
	case NATRA_PROTO_SCTP:
		return 12;
	default:
		return 0;
	}
}

/* The type of WireGuard's packets that have something inside, the first word behind UDP's header. */
#define NATRA_WIREGUARD_DATA natra_be32(0x04000000)

/*
 * Tells the flows inside of a WireGuard tunnel apart by eight bits of the hash that the sender's
 * kernel has left in the packet, which is that of the packet inside. In others the hash tells
 * nothing, or their receivers drop what another flow has overtaken by some packets (IPsec).
 */
natra_inline void natra_parse_inner(void *ctx, __u32 offset,
				    struct natra_parsed_packet *p)
{
	struct natra_tuple *t = &p->tuple;

	if (t->protocol == NATRA_PROTO_UDP && !t->fragment &&
	    NATRA_LOAD(ctx, offset + NATRA_UDP_LEN, p->raw, 4) == 0 &&
	    p->raw[0] == NATRA_WIREGUARD_DATA)
		t->inner = NATRA_INNER(ctx, t->ports);
}

/* The ports and the end of the layer 4 header. */
natra_inline void natra_parse_l4(void *ctx, __u32 offset,
				 struct natra_parsed_packet *p)
{
	struct natra_tuple *t = &p->tuple;

	p->l4_offset = offset;
	/* Without ports, all that two hosts send by a protocol is one flow,
	 * and all fragments of it but the first ones are another. */
	if (!p->later_piece && natra_has_ports(t->protocol) &&
	    NATRA_LOAD(ctx, offset, p->raw, sizeof(t->ports)) == 0)
		t->ports = p->raw[0];
	natra_parse_inner(ctx, offset, p);
	/* GSO cuts also what claims to be a fragment, and repeats this header. */
	p->header_len = offset + natra_l4_len(ctx, offset, t->protocol, p);
}

/* Returns the length of IPsec's authentication header, which has what follows in clear text, by
 * its second byte (RFC 4302, 2.2). */
natra_inline __u32 natra_ah_len(__u8 words)
{
	return (words + 2U) * 4;
}

/*
 * Moves *offset to layer 4; false: not a valid header. (A special value of the
 * offset would make the verifier walk what follows once for each offset.)
 */
natra_inline bool natra_parse_ipv4(void *ctx, __u32 *offset,
				   struct natra_parsed_packet *p)
{
	const __u8 *byte = (const __u8 *)p->raw;
	const __u16 *half = (const __u16 *)p->raw;
	struct natra_tuple *t = &p->tuple;

	if (NATRA_LOAD(ctx, *offset, p->raw, 20) < 0 || byte[0] >> 4 != 4 ||
	    (byte[0] & 0xf) < 5)
		return false;

	t->version = 4;
	t->protocol = byte[9];
	t->saddr[0] = p->raw[3];
	t->daddr[0] = p->raw[4];
	/*
	 * More fragments, or an offset: ports are in the first piece only. The
	 * IP id tells datagrams apart, not flows: with it, each large datagram
	 * of an elephant would be a mouse.
	 */
	p->fragment_id = half[2];
	if (half[3] & natra_be16(0x3fff))
		t->fragment = 1;
	p->later_piece = (half[3] & natra_be16(0x1fff)) != 0;
	*offset += (byte[0] & 0xf) * 4U;
	/* All pieces of a datagram have IPsec's header as their protocol, so a fragment stays
	 * one of that. */
	if (t->protocol == NATRA_PROTO_AH && !t->fragment &&
	    NATRA_LOAD(ctx, *offset, p->raw, 8) == 0) {
		*offset += natra_ah_len(byte[1]);
		t->protocol = byte[0];
	}
	return true;
}

/* Returns whether another header may stand behind one of this protocol, in IPv6. */
natra_inline bool natra_is_extension(__u8 next)
{
	const __u64 extensions =
		1ULL << NATRA_PROTO_HOPOPTS | 1ULL << NATRA_PROTO_ROUTING |
		1ULL << NATRA_PROTO_DSTOPTS | 1ULL << NATRA_PROTO_AH |
		1ULL << NATRA_PROTO_FRAGMENT;

	return next < 64 && (extensions >> next & 1);
}

/* Returns whether one may in a packet of this version: hosts know that of IPsec in IPv4, too, and
 * none of the others there. The version is 0 if it is not IP. */
natra_inline bool natra_is_followed(__u8 version, __u8 protocol)
{
	return version == 6 ? natra_is_extension(protocol)
			    : protocol == NATRA_PROTO_AH;
}

/* Does what natra_parse_ipv4 does; past at most NATRA_MAX_IPV6_EXTENSIONS extension headers. */
natra_inline bool natra_parse_ipv6(void *ctx, __u32 *offset,
				   struct natra_parsed_packet *p)
{
	const __u8 *byte = (const __u8 *)p->raw;
	const __u16 *half = (const __u16 *)p->raw;
	struct natra_tuple *t = &p->tuple;

	/* One load fills both addresses. */
	if (NATRA_LOAD(ctx, *offset, p->raw, 8) < 0 || byte[0] >> 4 != 6 ||
	    NATRA_LOAD(ctx, *offset + 8, t->saddr, 32) < 0)
		return false;

	t->version = 6;
	p->hop_limit = byte[7];
	t->protocol = byte[6];
	*offset += 40;
	if (t->protocol == NATRA_PROTO_HOPOPTS && !half[2] &&
	    NATRA_LOAD(ctx, *offset, p->raw, 4) == 0 &&
	    half[0] == natra_be16(NATRA_JUMBO_FIRST) &&
	    half[1] == natra_be16(NATRA_JUMBO_OPTION))
		p->jumbo_len = NATRA_JUMBO_LEN;

#pragma GCC unroll 1
	for (int i = 0; i < NATRA_MAX_IPV6_EXTENSIONS; i++) {
		__u8 next = t->protocol;
		__u32 len;

		if (t->fragment || !natra_is_extension(next) ||
		    NATRA_LOAD(ctx, *offset, p->raw, 8) < 0)
			break;
		len = (byte[1] + 1U) * 8;
		if (next == NATRA_PROTO_AH)
			len = natra_ah_len(byte[1]);
		if (next == NATRA_PROTO_FRAGMENT) {
			len = NATRA_FRAGMENT_LEN;
			/* An atomic fragment is a whole packet (RFC 6946). */
			p->fragment_id = p->raw[1];
			if (half[1] & natra_be16(0xfff9))
				t->fragment = 1;
			p->later_piece = (half[1] & natra_be16(0xfff8)) != 0;
		}
		*offset += len;
		t->protocol = byte[0];
	}
	return true;
}

/* Returns how many bytes of a packet of `len` bytes the kernel takes out before it cuts it
 * into segments. */
natra_inline __u32 natra_jumbo_len(const struct natra_parsed_packet *p,
				   __u32 len)
{
	return len < NATRA_JUMBO_MIN ? 0 : p->jumbo_len;
}

/* Returns whether there may be headers of any length behind p->header_len: the packet is not
 * IP, or has more extension headers than the parser follows. */
natra_inline bool natra_gave_up(const struct natra_parsed_packet *p)
{
	return !p->tuple.version || natra_is_extension(p->tuple.protocol);
}

/*
 * Reads the Ethernet header at *offset and its VLAN tags. Returns the type of
 * what follows them and moves *offset there; returns 0 if the type cannot be
 * told.
 *
 * The type in the frame decides, not skb->protocol, which a pod with a packet
 * socket may set to anything.
 */
natra_inline __u16 natra_parse_ethernet(void *ctx, __u32 *offset,
					struct natra_parsed_packet *p)
{
	const __u16 *type = (const __u16 *)p->raw;

	p->raw[0] = 0;
	*offset += NATRA_ETH_LEN;
	if (NATRA_LOAD(ctx, *offset - 2, p->raw, 2) < 0)
		return 0;
#pragma GCC unroll 1
	for (int i = 0; i < NATRA_MAX_VLAN_TAGS; i++) {
		if (!natra_is_vlan(natra_be16(*type)) ||
		    NATRA_LOAD(ctx, *offset + 2, p->raw, 2) < 0)
			break;
		*offset += 4;
	}
	return natra_be16(*type);
}

/* Classifies a packet that is not IP, whose Ethernet header ends at `offset`,
 * and sets the ports of its tuple to the EtherType. If the type cannot be told,
 * or is that of a third VLAN tag, the packet is opaque. */
natra_inline int natra_parse_other(__u32 offset, __u16 type,
				   struct natra_parsed_packet *p)
{
	p->header_len = offset;
	if (!type || natra_is_vlan(type))
		return NATRA_PARSED_OPAQUE;
	if (type < NATRA_ETHERTYPE_MIN)
		type = NATRA_ETHERTYPE_LLC;
	p->tuple.ports = natra_be16(type);
	return type == NATRA_ETHERTYPE_LLC || type == NATRA_ETHERTYPE_ARP ||
			       type == NATRA_ETHERTYPE_SLOW ||
			       type == NATRA_ETHERTYPE_EAPOL ||
			       type == NATRA_ETHERTYPE_LLDP
		       ? NATRA_PARSED_CONTROL
		       : NATRA_PARSED_OTHER;
}

/*
 * Returns whether an IP packet, whose layer 4 begins at `offset`, is one of IPv6 neighbour
 * discovery, which is to IPv6 what ARP is to IPv4. No router has forwarded it (RFC 4861,
 * 6.1 and 7.1), and it is no fragment (RFC 6980): hosts ignore all others.
 */
natra_inline bool natra_is_discovery(void *ctx, __u32 offset,
				     struct natra_parsed_packet *p)
{
	const __u8 *type = (const __u8 *)p->raw;

	return p->tuple.version == 6 &&
	       p->tuple.protocol == NATRA_PROTO_ICMPV6 && !p->tuple.fragment &&
	       p->hop_limit == 255 && NATRA_LOAD(ctx, offset, p->raw, 1) == 0 &&
	       *type >= NATRA_DISCOVERY_FIRST && *type <= NATRA_DISCOVERY_LAST;
}

/* has_l2: the device has an Ethernet header; else the packet begins with IP. */
natra_inline int natra_parse(void *ctx, bool has_l2,
			     struct natra_parsed_packet *p)
{
	__u32 offset = 0;
	__u16 type = 0;
	bool valid;

	__builtin_memset(&p->tuple, 0, sizeof(p->tuple));
	p->header_len = 0;
	p->jumbo_len = 0;
	p->later_piece = 0;
	if (has_l2) {
		type = natra_parse_ethernet(ctx, &offset, p);
	} else if (NATRA_LOAD(ctx, 0, p->raw, 1) == 0) {
		if (*(const __u8 *)p->raw >> 4 == 4)
			type = NATRA_ETHERTYPE_IPV4;
		else if (*(const __u8 *)p->raw >> 4 == 6)
			type = NATRA_ETHERTYPE_IPV6;
	}

	if (type == NATRA_ETHERTYPE_IPV4)
		valid = natra_parse_ipv4(ctx, &offset, p);
	else if (type == NATRA_ETHERTYPE_IPV6)
		valid = natra_parse_ipv6(ctx, &offset, p);
	else
		return natra_parse_other(offset, type, p);
	if (!valid)
		return NATRA_PARSED_OPAQUE;
	natra_parse_l4(ctx, offset, p);
	return natra_is_discovery(ctx, offset, p) ? NATRA_PARSED_CONTROL
						  : NATRA_PARSED_IP;
}

#endif
