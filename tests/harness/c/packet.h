/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds packets for tests layer by layer: each call appends a layer and writes
 * its number into the layer before. packet_end fills in the lengths and the
 * IPv4 checksum. The addresses are those of RFC 5737 and RFC 3849. */
#ifndef TH_PACKET_H
#define TH_PACKET_H

#include <stddef.h>
#include <stdint.h>

#define PACKET_MAX      2048
#define PACKET_NO_LAYER SIZE_MAX

#define PACKET_MORE_FRAGMENTS 0x2000

struct packet {
	uint8_t data[PACKET_MAX];
	size_t len;
	size_t type_at; /* offset of the ethertype that the next layer sets */
	size_t next_at; /* offset of the protocol number that it sets */
	size_t l3;
	size_t l4;
};

/* Every field may be left zero. */
struct packet_ip {
	uint8_t tos;
	uint8_t options; /* in 32-bit words, IPv4 only */
	uint8_t source;  /* added to the last byte of the address */
	uint8_t target;
	uint16_t id;
	uint16_t fragment; /* IPv4: flags and offset / 8, host order */
};

void packet_begin(struct packet *p);
void packet_ethernet(struct packet *p);
void packet_vlan(struct packet *p, uint16_t tpid, uint16_t tci);
void packet_ipv4(struct packet *p, const struct packet_ip *ip);
void packet_ipv6(struct packet *p, const struct packet_ip *ip);
/* Appends an IPv6 extension header of len bytes. */
void packet_extension(struct packet *p, uint8_t number, size_t len);
/* fragment is the offset in bytes, a multiple of 8, plus 1 if more follow. */
void packet_ipv6_fragment(struct packet *p, uint16_t fragment, uint32_t id);
/* Appends the header of any protocol that begins with two ports. */
void packet_ports(struct packet *p, uint8_t protocol, uint16_t source,
		  uint16_t target, size_t header_len);
void packet_tcp(struct packet *p, uint16_t source, uint16_t target,
		size_t header_len);
void packet_udp(struct packet *p, uint16_t source, uint16_t target);
void packet_echo(struct packet *p, uint8_t protocol, uint8_t type, uint16_t id);
void packet_type(struct packet *p, uint16_t ethertype);
void packet_payload(struct packet *p, size_t len);
/* Appends payload until the frame has len bytes. */
void packet_pad(struct packet *p, size_t len);
void packet_end(struct packet *p);

/* Both begin an Ethernet frame with an IP header. */
void packet_begin_ipv4(struct packet *p, const struct packet_ip *ip);
void packet_begin_ipv6(struct packet *p, const struct packet_ip *ip);

/* Returns whether the IPv4 header's checksum is right. */
int packet_checksum_good(const uint8_t *ipv4);

/*
 * Makes a packet of words, one for each layer, with numbers behind colons; what stands in brackets
 * may be left out:
 *
 *	eth                            ext:NUMBER:LEN, an extension header
 *	vlan[:TCI], svlan[:TCI]        frag:OFFSET AND FLAG:ID, of IPv6
 *	type:ETHERTYPE                 tcp[:LEN[:SOURCE]], udp[:TARGET[:SOURCE]]
 *	ip4, ip6                       ports:PROTOCOL:LEN[:TARGET[:SOURCE]]
 *	next:PROTOCOL, in IP's header  echo:PROTOCOL:TYPE
 *	hex:BYTES, pay:LEN             pad:LEN, up to so many bytes in all
 *
 * The numbers of IP have a letter in front: those of struct packet_ip (o, t, f, i, and s and d for
 * the addresses) and h, the hop limit of IPv6. The source's port is 1000, the target's 80 with TCP
 * and 53 without.
 */
struct packet packet_of(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* Both make an Ethernet frame of `len` bytes in all that carries TCP with a
 * header of 20 bytes. */
void packet_make_tcp4(struct packet *p, uint16_t source, uint8_t tos,
		      size_t len);
void packet_make_tcp6(struct packet *p, uint16_t source, uint8_t tos,
		      size_t len);

#endif
