/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Finds the length of the headers of a tunnel's GSO packet: VXLAN, Geneve, GRE,
 * IP in IP, MPLS and PPPoE. Each of its segments has them all, from the outer
 * Ethernet header to the inner layer 4; natra_parse reads the outer ones only,
 * which are the flow's identity.
 */
#ifndef NATRA_TUNNEL_H
#define NATRA_TUNNEL_H

#include "natra_parse.h"

#define NATRA_VXLAN_LEN  8
#define NATRA_GENEVE_LEN 8
#define NATRA_GRE_LEN    4
#define NATRA_PPPOE_LEN  8 /* with the protocol field of PPP */
#define NATRA_LABEL_LEN  4

/* A longer stack of MPLS labels counts as if it had no IP packet below. */
#define NATRA_MAX_LABELS 4
#define NATRA_LAST_LABEL 1 /* in the third byte of a label */

#define NATRA_PPP_IPV4 0x0021
#define NATRA_PPP_IPV6 0x0057

/* UDP ports of tunnels. Linux's VXLAN has a default port of its own. */
#define NATRA_PORT_VXLAN       4789
#define NATRA_PORT_VXLAN_LINUX 8472
#define NATRA_PORT_GENEVE      6081

#define NATRA_ETHERTYPE_WCCP 0x883e /* in GRE */

#define NATRA_GRE_CHECKSUM 0x8000
#define NATRA_GRE_KEY      0x2000
#define NATRA_GRE_SEQUENCE 0x1000

/* Returns whether a UDP port, in network byte order, is a tunnel's. */
natra_inline bool natra_is_tunnel_port(__u16 port)
{
	return port == natra_be16(NATRA_PORT_VXLAN) ||
	       port == natra_be16(NATRA_PORT_VXLAN_LINUX) ||
	       port == natra_be16(NATRA_PORT_GENEVE);
}

/* Returns whether packets of an IP protocol are a tunnel's. */
natra_inline bool natra_is_tunnel(__u8 protocol)
{
	return protocol == NATRA_PROTO_IPIP || protocol == NATRA_PROTO_IPV6 ||
	       protocol == NATRA_PROTO_GRE;
}

/* Moves *offset behind a stack of MPLS labels. Returns the EtherType of the IP
 * packet there, which only its first bits tell, or 0. */
natra_inline __u16 natra_label_type(void *ctx, __u32 *offset,
				    struct natra_parsed_packet *p)
{
	const __u8 *byte = (const __u8 *)p->raw;
	bool last = false;

#pragma GCC unroll 1
	for (int i = 0; i < NATRA_MAX_LABELS && !last; i++) {
		if (NATRA_LOAD(ctx, *offset, p->raw, NATRA_LABEL_LEN) < 0)
			return 0;
		last = byte[2] & NATRA_LAST_LABEL;
		*offset += NATRA_LABEL_LEN;
	}
	if (!last || NATRA_LOAD(ctx, *offset, p->raw, 1) < 0)
		return 0;
	return byte[0] >> 4 == 4 ? NATRA_ETHERTYPE_IPV4 : NATRA_ETHERTYPE_IPV6;
}

/* Moves *offset to the IP packet in one that is not IP to begin with: one with MPLS
 * labels or in a PPPoE session. Returns its EtherType, or 0. */
natra_inline __u16 natra_carried_type(void *ctx, __u32 *offset,
				      struct natra_parsed_packet *p)
{
	const __u16 *half = (const __u16 *)p->raw;
	const __u16 type = natra_be16((__u16)p->tuple.ports);

	if (type == NATRA_ETHERTYPE_MPLS || type == NATRA_ETHERTYPE_MPLS_M)
		return natra_label_type(ctx, offset, p);
	if (type != NATRA_ETHERTYPE_PPPOE ||
	    NATRA_LOAD(ctx, *offset, p->raw, NATRA_PPPOE_LEN) < 0)
		return 0;
	*offset += NATRA_PPPOE_LEN;
	if (half[3] == natra_be16(NATRA_PPP_IPV4))
		return NATRA_ETHERTYPE_IPV4;
	return half[3] == natra_be16(NATRA_PPP_IPV6) ? NATRA_ETHERTYPE_IPV6 : 0;
}

/* Returns the EtherType of what the tunnel carries and moves *offset behind the
 * tunnel's header; returns 0 if the packet is not a tunnel's. */
natra_inline __u16 natra_tunnel_type(void *ctx, __u32 *offset,
				     struct natra_parsed_packet *p)
{
	const __u8 *byte = (const __u8 *)p->raw;
	const __u16 *half = (const __u16 *)p->raw;
	const __u16 port = p->tuple.ports >> 16;
	__u16 flags;

	if (!p->tuple.version)
		return natra_carried_type(ctx, offset, p);
	switch (p->tuple.protocol) {
	case NATRA_PROTO_IPIP:
		return NATRA_ETHERTYPE_IPV4;
	case NATRA_PROTO_IPV6:
		return NATRA_ETHERTYPE_IPV6;
	case NATRA_PROTO_GRE:
		if (NATRA_LOAD(ctx, *offset, p->raw, NATRA_GRE_LEN) < 0)
			return 0;
		flags = natra_be16(half[0]);
		*offset += NATRA_GRE_LEN;
		*offset += flags & NATRA_GRE_CHECKSUM ? 4 : 0;
		*offset += flags & NATRA_GRE_KEY ? 4 : 0;
		*offset += flags & NATRA_GRE_SEQUENCE ? 4 : 0;
		return natra_be16(half[1]);
	case NATRA_PROTO_UDP:
		if (!natra_is_tunnel_port(port) ||
		    NATRA_LOAD(ctx, *offset, p->raw, NATRA_GENEVE_LEN) < 0)
			return 0;
		*offset += NATRA_VXLAN_LEN;
		if (port != natra_be16(NATRA_PORT_GENEVE))
			return NATRA_ETHERTYPE_TEB;
		*offset += (byte[0] & 0x3f) * 4U;
		return natra_be16(half[1]);
	default:
		return 0;
	}
}

enum natra_inner {
	NATRA_INNER_NONE, /* it is not IP, or the rest of a datagram */
	NATRA_INNER_L4,
	NATRA_INNER_HIDDEN, /* the way to layer 4 is longer than what is followed */
};

/* Reads the header of the IP packet inside of a tunnel, without a loop. Moves *offset to
 * layer 4 if it is found. */
natra_inline enum natra_inner natra_inner_l4(void *ctx, __u32 *offset,
					     __u16 type,
					     struct natra_parsed_packet *p,
					     __u8 *protocol)
{
	const __u8 *byte = (const __u8 *)p->raw;
	const __u16 *half = (const __u16 *)p->raw;
	bool cut = false;

	/* Linux takes the one of WCCP for IPv4, with or without 4 bytes in front of it. */
	if (natra_is_vlan(type) || type == NATRA_ETHERTYPE_WCCP)
		return NATRA_INNER_HIDDEN;
	if ((type != NATRA_ETHERTYPE_IPV4 && type != NATRA_ETHERTYPE_IPV6) ||
	    NATRA_LOAD(ctx, *offset, p->raw, 20) < 0)
		return NATRA_INNER_NONE;
	if (type == NATRA_ETHERTYPE_IPV4) {
		*protocol = byte[9];
		cut = half[3] & natra_be16(0x3fff);
		if (half[3] & natra_be16(0x1fff))
			return NATRA_INNER_NONE;
		*offset += (byte[0] & 0xf) * 4U;
	} else {
		*protocol = byte[6];
		*offset += 40;
	}
	if (natra_is_tunnel(*protocol) ||
	    natra_is_followed(type == NATRA_ETHERTYPE_IPV6 ? 6 : 4, *protocol))
		return NATRA_INNER_HIDDEN;
	if (*protocol == NATRA_PROTO_UDP &&
	    NATRA_LOAD(ctx, *offset, p->raw, 4) == 0 &&
	    natra_is_tunnel_port(half[1]))
		return NATRA_INNER_HIDDEN;
	if (cut)
		return *protocol == NATRA_PROTO_TCP ? NATRA_INNER_HIDDEN
						    : NATRA_INNER_NONE;
	return NATRA_INNER_L4;
}

/* Returns the offset at which the inner packet's layer 4 header ends; 0 if it
 * has none, or if the inner packet is no GSO packet. */
natra_inline __u32 natra_inner_end(void *ctx, __u32 offset, __u16 type,
				   __u32 gso_size,
				   struct natra_parsed_packet *p)
{
	const __u8 *byte = (const __u8 *)p->raw;
	const __u16 *half = (const __u16 *)p->raw;
	__u32 len;
	__u8 protocol;

	if (NATRA_LOAD(ctx, offset, p->raw, 20) < 0)
		return 0;
	if (type == NATRA_ETHERTYPE_IPV4 && byte[0] >> 4 == 4) {
		len = natra_be16(half[1]);
		protocol = byte[9];
		offset += (byte[0] & 0xf) * 4U;
	} else if (type == NATRA_ETHERTYPE_IPV6 && byte[0] >> 4 == 6) {
		len = natra_be16(half[2]);
		protocol = byte[6];
		offset += 40;
	} else {
		return 0;
	}
	/*
	 * The kernel's tunnels cut the inner packet into segments. A program
	 * that makes the tunnel's headers itself has them once in the payload
	 * of each segment, around a packet that fits in one. A length of 0
	 * stands for a packet of over 64 kB.
	 */
	if (len && len <= gso_size)
		return 0;
	return offset + natra_l4_len(ctx, offset, protocol, p);
}

/* Returns where a tunnel's inner packet begins, with its EtherType in the upper half; 0 if
 * the packet is not a tunnel's. `p` must be as natra_parse left it; its buffer is
 * overwritten. */
natra_inline __u64 natra_enter(void *ctx, struct natra_parsed_packet *p)
{
	__u32 offset = p->header_len;
	__u16 type;

	if (p->tuple.fragment)
		return 0;
	type = natra_tunnel_type(ctx, &offset, p);
	type = (__u16)NATRA_FORGET(type, offset);
	if (type == NATRA_ETHERTYPE_TEB)
		type = natra_parse_ethernet(ctx, &offset, p);
	return type ? (__u64)type << 32 | offset : 0;
}

/* Returns the bytes of headers that each segment has behind p->header_len; 0 if the packet
 * is not a tunnel's. `entered` is what natra_enter has found. */
natra_inline __u32 natra_tunnel_len(void *ctx, __u64 entered, __u32 gso_size,
				    struct natra_parsed_packet *p)
{
	const __u32 end = natra_inner_end(ctx, (__u32)entered,
					  (__u16)(entered >> 32), gso_size, p);

	return end ? end - p->header_len : 0;
}

#endif
