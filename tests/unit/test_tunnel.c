/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check how many bytes of headers a tunnel adds to each segment of a
 * GSO packet. */
#include "cm.h"
#include "parsing.h"

#include "natra_tunnel.h"

#define GSO_SIZE  500
#define OUTER     (14 + 20 + 8)
#define INNER_LEN 1500

static const struct packet_ip plain;

static void put16(struct packet *p, size_t at, size_t value)
{
	p->data[at] = (uint8_t)(value >> 8);
	p->data[at + 1] = (uint8_t)value;
}

static __u32 tunnel_len(const struct packet *p)
{
	struct th_bytes bytes = {.data = p->data, .len = p->len};
	struct parsed r = parse_packet(p);

	return natra_tunnel_len(&bytes, natra_enter(&bytes, &r.res), GSO_SIZE,
				&r.res);
}

/* Begins a packet with all headers up to the outer UDP header. */
static void begin_udp(struct packet *p, uint16_t port)
{
	packet_begin_ipv4(p, &plain);
	packet_udp(p, 40000, port);
}

static void append_bytes(struct packet *p, const char *bytes, size_t len)
{
	packet_payload(p, len);
	memcpy(p->data + p->len - len, bytes, len);
}

/* Adds the inner IP header, whose length field includes `payload`, and a TCP
 * header with timestamps. */
static void inner(struct packet *p, int version, size_t payload)
{
	if (version == 4)
		packet_ipv4(p, &plain);
	else
		packet_ipv6(p, &plain);
	packet_tcp(p, 1000, 80, 32);
	if (version == 4)
		put16(p, p->l3 + 2, 20 + 32 + payload);
	else
		put16(p, p->l3 + 4, 32 + payload);
	packet_payload(p, INNER_LEN);
}

static void vxlan(struct packet *p, uint16_t port, int version, int tags,
		  size_t payload)
{
	begin_udp(p, port);
	append_bytes(p, "\x08\0\0\0\0\0\x2a\0", 8);
	packet_ethernet(p);
	for (int i = 0; i < tags; i++)
		packet_vlan(p, 0x8100, 5);
	inner(p, version, payload);
}

TH_TEST(vxlan_adds_two_headers_and_a_frames)
{
	static const uint16_t ports[] = {4789, 8472};
	struct packet p;

	for (size_t i = 0; i < TH_LEN(ports); i++) {
		vxlan(&p, ports[i], 4, 0, INNER_LEN);
		assert_int_equal(tunnel_len(&p), 8 + 14 + 20 + 32);
		vxlan(&p, ports[i], 6, 0, INNER_LEN);
		assert_int_equal(tunnel_len(&p), 8 + 14 + 40 + 32);
		vxlan(&p, ports[i], 6, 2, INNER_LEN);
		assert_int_equal(tunnel_len(&p), 8 + 14 + 8 + 40 + 32);
	}
}

TH_TEST(geneve_has_options_and_a_frame_or_a_packet)
{
	struct packet p;

	begin_udp(&p, 6081);
	append_bytes(&p,
		     "\x02\0\x65\x58\0\0\x2a\0"
		     "options.",
		     16);
	packet_ethernet(&p);
	inner(&p, 4, INNER_LEN);
	assert_int_equal(tunnel_len(&p), 16 + 14 + 20 + 32);
	begin_udp(&p, 6081);
	append_bytes(&p, "\0\0\x86\xdd\0\0\x2a\0", 8);
	p.type_at = PACKET_NO_LAYER;
	inner(&p, 6, INNER_LEN);
	assert_int_equal(tunnel_len(&p), 8 + 40 + 32);
}

TH_TEST(ip_in_ip_of_either_version)
{
	static const uint8_t protocols[] = {0, 0, 0, 0, 4, 0, 41};
	struct packet p;

	for (int outside = 4; outside <= 6; outside += 2) {
		for (int inside = 4; inside <= 6; inside += 2) {
			packet_begin(&p);
			packet_ethernet(&p);
			if (outside == 4)
				packet_ipv4(&p, &plain);
			else
				packet_ipv6(&p, &plain);
			p.data[p.next_at] = protocols[inside];
			p.type_at = PACKET_NO_LAYER;
			inner(&p, inside, INNER_LEN);
			assert_int_equal(tunnel_len(&p),
					 (inside == 4 ? 20 : 40) + 32);
		}
	}
}

TH_TEST(each_flag_of_gre_adds_a_word)
{
	static const uint8_t flags[] = {0x80, 0x20, 0x10};
	struct packet p;

	for (unsigned int mask = 0; mask < 8; mask++) {
		uint32_t len = 4;
		uint8_t byte = 0;

		for (size_t i = 0; i < TH_LEN(flags); i++) {
			if (!(mask & 1U << i))
				continue;
			byte |= flags[i];
			len += 4;
		}
		packet_begin_ipv4(&p, &plain);
		packet_ports(&p, 47, (uint16_t)(byte << 8), 0x6558, len);
		packet_ethernet(&p);
		inner(&p, 4, INNER_LEN);
		assert_int_equal(tunnel_len(&p), len + 14 + 20 + 32);
	}
}

/* Begins a packet that is not IP: with an EtherType and `len` bytes. */
static void begin_other(struct packet *p, uint16_t type, const char *bytes,
			size_t len)
{
	packet_begin(p);
	packet_ethernet(p);
	packet_type(p, type);
	p->type_at = PACKET_NO_LAYER;
	append_bytes(p, bytes, len);
}

/* Returns the length of all headers of each segment. */
static __u32 headers_len(const struct packet *p)
{
	return parse_packet(p).res.header_len + tunnel_len(p);
}

static void mpls(struct packet *p, uint16_t type, size_t labels, int version)
{
	begin_other(p, type, "", 0);
	for (; labels > 1; labels--)
		append_bytes(p, "\0\0\x10\xff", 4);
	append_bytes(p, "\0\0\x11\xff", 4);
	inner(p, version, INNER_LEN);
}

TH_TEST(each_label_of_mpls_adds_a_word)
{
	static const uint16_t types[] = {0x8847, 0x8848};
	struct packet p;

	for (size_t i = 0; i < TH_LEN(types); i++) {
		for (size_t labels = 1; labels <= 4; labels++) {
			mpls(&p, types[i], labels, 4);
			assert_int_equal(headers_len(&p),
					 14 + 4 * labels + 20 + 32);
			mpls(&p, types[i], labels, 6);
			assert_int_equal(headers_len(&p),
					 14 + 4 * labels + 40 + 32);
		}
		mpls(&p, types[i], 5, 4);
		assert_int_equal(headers_len(&p), 14);
	}
}

TH_TEST(pppoe_adds_eight_bytes)
{
	struct packet p;

	begin_other(&p, 0x8864, "\x11\0\0\x07\0\0\0\x21", 8);
	inner(&p, 4, INNER_LEN);
	assert_int_equal(headers_len(&p), 14 + 8 + 20 + 32);
	begin_other(&p, 0x8864, "\x11\0\0\x07\0\0\0\x57", 8);
	inner(&p, 6, INNER_LEN);
	assert_int_equal(headers_len(&p), 14 + 8 + 40 + 32);
	/* The link control protocol is no IP. */
	begin_other(&p, 0x8864, "\x11\0\0\x07\0\0\xc0\x21", 8);
	inner(&p, 4, INNER_LEN);
	assert_int_equal(headers_len(&p), 14);
}

/* When a program makes the tunnel, each segment of its socket's GSO packet is
 * already a whole packet of the tunnel. */
TH_TEST(tunnel_that_a_program_makes_has_its_headers_in_the_payload)
{
	struct packet p;

	vxlan(&p, 4789, 4, 0, GSO_SIZE - 8 - 14 - 20 - 32);
	assert_int_equal(tunnel_len(&p), 0);
	vxlan(&p, 4789, 6, 0, GSO_SIZE - 8 - 14 - 40 - 32);
	assert_int_equal(tunnel_len(&p), 0);
}

TH_TEST(what_is_no_tunnel_adds_nothing)
{
	struct packet p;

	packet_make_tcp4(&p, 1000, 0, 1514);
	assert_int_equal(tunnel_len(&p), 0);
	begin_udp(&p, 443);
	packet_payload(&p, INNER_LEN);
	assert_int_equal(tunnel_len(&p), 0);
	/* The port is a tunnel's, but the payload is no packet. */
	begin_udp(&p, 4789);
	packet_payload(&p, INNER_LEN);
	assert_int_equal(tunnel_len(&p), 0);
	for (size_t len = 0; len < 8 + 14 + 20; len++) {
		vxlan(&p, 4789, 4, 0, INNER_LEN);
		p.len = OUTER + len;
		assert_int_equal(tunnel_len(&p), 0);
	}
	for (size_t len = 0; len < 8 + 20; len++) {
		begin_other(&p, 0x8864, "\x11\0\0\x07\0\0\0\x21", 8);
		inner(&p, 4, INNER_LEN);
		p.len = 14 + len;
		assert_int_equal(tunnel_len(&p), 0);
		mpls(&p, 0x8847, 2, 4);
		p.len = 14 + len;
		assert_int_equal(tunnel_len(&p), 0);
	}
}

TH_TEST(flow_stays_that_of_the_outer_packet)
{
	struct packet p;
	struct parsed before, after;
	struct th_bytes bytes;

	vxlan(&p, 4789, 6, 0, INNER_LEN);
	before = after = parse_packet(&p);
	bytes = (struct th_bytes){.data = p.data, .len = p.len};
	assert_int_not_equal(natra_tunnel_len(&bytes,
					      natra_enter(&bytes, &after.res),
					      GSO_SIZE, &after.res),
			     0);
	assert_true(same_flow(&before, &after));
	assert_int_equal(after.res.header_len, OUTER);
}

TH_MAIN(NULL, NULL)
