/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests parse layer 2 and IPv4; IPv6 is in test_parse_ipv6.c. */
#include "cm.h"
#include "parsing.h"

static const struct packet_ip plain;

static void begin_ipv4(struct packet *p, const struct packet_ip *ip)
{
	packet_begin_ipv4(p, ip);
}

TH_TEST(tcp_has_addresses_ports_and_header_length)
{
	const uint8_t saddr[] = {192, 0, 2, 1}, daddr[] = {198, 51, 100, 1};
	struct packet p;
	struct parsed r;

	packet_make_tcp4(&p, 40000, 0, 1514);
	r = parse_packet(&p);
	assert_int_equal(r.kind, NATRA_PARSED_IP);
	assert_int_equal(r.res.tuple.version, 4);
	assert_int_equal(r.res.tuple.protocol, 6);
	assert_int_equal(r.res.tuple.fragment, 0);
	assert_int_equal(r.res.tuple.ports, ports_of(40000, 80));
	assert_memory_equal(&r.res.tuple.saddr[0], saddr, 4);
	assert_memory_equal(&r.res.tuple.daddr[0], daddr, 4);
	for (int i = 1; i < 4; i++) {
		assert_int_equal(r.res.tuple.saddr[i], 0);
		assert_int_equal(r.res.tuple.daddr[i], 0);
	}
	assert_int_equal(r.res.header_len, 14 + 20 + 20);
}

TH_TEST(device_without_ethernet_gives_the_same_flow)
{
	struct packet p;
	struct parsed l2, l3;

	packet_make_tcp4(&p, 40000, 0, 200);
	l2 = parse_packet(&p);
	l3 = parse_bytes(&p, 14, p.len - 14, false);
	assert_int_equal(l3.kind, NATRA_PARSED_IP);
	assert_true(same_flow(&l2, &l3));
	assert_int_equal(l3.res.header_len, 40);
}

TH_TEST(device_without_ethernet_has_ip_or_an_opaque_flow)
{
	struct packet p;

	packet_make_tcp4(&p, 1, 0, 100);
	for (unsigned int version = 0; version < 16; version++) {
		int kind;

		p.data[14] = (uint8_t)(version << 4 | 5);
		kind = parse_bytes(&p, 14, p.len - 14, false).kind;
		if (version == 4 || version == 6)
			assert_int_equal(kind, NATRA_PARSED_IP);
		else
			assert_int_equal(kind, NATRA_PARSED_OPAQUE);
	}
	assert_int_equal(parse_bytes(&p, 0, 0, false).kind,
			 NATRA_PARSED_OPAQUE);
}

/* Returns what tells a flow inside of a packet apart that came with 7 for that. The packet is of
 * UDP or UDP-Lite, and its payload begins with this type of WireGuard's. */
static uint8_t inner_of_type(uint8_t protocol, uint8_t type, uint16_t fragment)
{
	struct packet p;
	struct natra_parsed_packet res;
	struct th_bytes bytes = {.data = p.data, .inner = 7};

	packet_begin_ipv4(&p, &(struct packet_ip){.fragment = fragment});
	packet_ports(&p, protocol, 40000, 51820, 8);
	packet_payload(&p, 32);
	p.data[p.len - 32] = type;
	memset(p.data + p.len - 31, 0, 3);
	packet_end(&p);
	bytes.len = p.len;
	(void)natra_parse(&bytes, true, &res);
	return res.tuple.inner;
}

TH_TEST(flows_inside_of_wireguard_are_told_apart)
{
	assert_int_equal(inner_of_type(NATRA_PROTO_UDP, 4, 0), 7);
	assert_int_equal(inner_of_type(NATRA_PROTO_UDP, 1, 0), 0);
	assert_int_equal(inner_of_type(NATRA_PROTO_UDPLITE, 4, 0), 0);
	assert_int_equal(
		inner_of_type(NATRA_PROTO_UDP, 4, PACKET_MORE_FRAGMENTS), 0);
}

TH_TEST(up_to_two_vlan_tags_are_looked_behind)
{
	static const uint16_t tpids[] = {0x8100, 0x88a8};
	struct packet p;
	struct parsed none, r;

	packet_make_tcp4(&p, 40000, 0, 100);
	none = parse_packet(&p);
	for (int tags = 1; tags <= 2; tags++) {
		for (size_t i = 0; i < TH_LEN(tpids); i++) {
			packet_begin(&p);
			packet_ethernet(&p);
			for (int tag = 0; tag < tags; tag++)
				packet_vlan(&p, tpids[i], 100);
			packet_ipv4(&p, &plain);
			packet_tcp(&p, 40000, 80, 20);
			packet_end(&p);
			r = parse_packet(&p);
			assert_true(same_flow(&none, &r));
			assert_int_equal(r.res.header_len, 54 + 4 * tags);
		}
	}
}

TH_TEST(three_vlan_tags_are_one_opaque_flow)
{
	const struct natra_tuple zero = {0};
	struct packet p;
	struct parsed r;

	packet_begin(&p);
	packet_ethernet(&p);
	for (uint16_t tag = 0; tag < 3; tag++)
		packet_vlan(&p, 0x8100, tag);
	packet_ipv4(&p, &plain);
	packet_tcp(&p, 40000, 80, 20);
	packet_end(&p);
	r = parse_packet(&p);
	assert_int_equal(r.kind, NATRA_PARSED_OPAQUE);
	assert_memory_equal(&r.res.tuple, &zero, sizeof(zero));
}

static struct parsed parse_type(uint16_t type, int tags)
{
	struct packet p;

	packet_begin(&p);
	packet_ethernet(&p);
	for (int i = 0; i < tags; i++)
		packet_vlan(&p, i ? 0x8100 : 0x88a8, (uint16_t)i);
	packet_type(&p, type);
	packet_payload(&p, 100);
	return parse_packet(&p);
}

/* The types are one for local experiments, MPLS, PPPoE discovery and session,
 * and one that is not in use. */
TH_TEST(each_ethertype_is_a_flow_of_its_own)
{
	static const uint16_t types[] = {0x88b5, 0x8847, 0x8848, 0x8863,
					 0x8864, 0x0600, 0xffff};

	for (size_t i = 0; i < TH_LEN(types); i++) {
		struct parsed r = parse_type(types[i], 0);

		assert_int_equal(r.kind, NATRA_PARSED_OTHER);
		assert_int_equal(r.res.tuple.ports, natra_be16(types[i]));
		assert_int_equal(r.res.tuple.version, 0);
		for (int tags = 1; tags <= 2; tags++) {
			struct parsed tagged = parse_type(types[i], tags);

			assert_true(same_flow(&r, &tagged));
		}
		for (size_t j = 0; j < i; j++) {
			struct parsed other = parse_type(types[j], 0);

			assert_false(same_flow(&r, &other));
		}
	}
}

/* The types are those of ARP, LACP, IEEE 802.1X and LLDP. */
TH_TEST(what_the_link_depends_on_is_told_from_the_rest)
{
	static const uint16_t types[] = {0x0806, 0x8809, 0x888e, 0x88cc};

	for (size_t i = 0; i < TH_LEN(types); i++) {
		struct parsed r = parse_type(types[i], (int)i % 3);

		assert_int_equal(r.kind, NATRA_PARSED_CONTROL);
		assert_int_equal(r.res.tuple.ports, natra_be16(types[i]));
	}
}

/* An STP frame has a length in place of the EtherType. */
TH_TEST(all_lengths_in_place_of_a_type_are_one_flow)
{
	struct parsed stp = parse_type(38, 0);

	for (uint16_t len = 1; len < 0x0600; len += 7) {
		struct parsed r = parse_type(len, len % 3);

		assert_int_equal(r.kind, NATRA_PARSED_CONTROL);
		assert_true(same_flow(&stp, &r));
	}
	assert_int_equal(parse_type(0, 0).kind, NATRA_PARSED_OPAQUE);
}

TH_TEST(type_and_version_must_tell_the_same)
{
	struct packet p;

	packet_make_tcp4(&p, 40000, 0, 100);
	p.type_at = 12;
	packet_type(&p, 0x86dd);
	assert_int_equal(parse_packet(&p).kind, NATRA_PARSED_OPAQUE);
	packet_make_tcp6(&p, 40000, 0, 100);
	p.type_at = 12;
	packet_type(&p, 0x0800);
	assert_int_equal(parse_packet(&p).kind, NATRA_PARSED_OPAQUE);
	/* The traffic class has the bits that would be a header length in
	 * IPv4. */
	packet_make_tcp6(&p, 40000, 0x50, 100);
	p.type_at = 12;
	packet_type(&p, 0x0800);
	assert_int_equal(parse_packet(&p).kind, NATRA_PARSED_OPAQUE);
}

TH_TEST(ip_options_do_not_change_the_flow)
{
	struct packet p;
	struct parsed none, r;

	packet_make_tcp4(&p, 40000, 0, 100);
	none = parse_packet(&p);
	for (uint8_t words = 1; words <= 10; words++) {
		begin_ipv4(&p, &(struct packet_ip){.options = words});
		packet_tcp(&p, 40000, 80, 20);
		packet_end(&p);
		r = parse_packet(&p);
		assert_true(same_flow(&none, &r));
		assert_int_equal(r.res.header_len, 54 + 4 * words);
	}
}

TH_TEST(header_shorter_than_ipv4_has_is_opaque)
{
	struct packet p;

	for (uint8_t words = 0; words < 5; words++) {
		packet_make_tcp4(&p, 40000, 0, 100);
		p.data[14] = (uint8_t)(0x40 | words);
		assert_int_equal(parse_packet(&p).kind, NATRA_PARSED_OPAQUE);
	}
}

static struct parsed parse_fragment(uint16_t fragment, uint16_t id,
				    uint8_t target)
{
	struct packet p;

	begin_ipv4(&p, &(struct packet_ip){.fragment = fragment,
					   .id = id,
					   .target = target});
	if (fragment & 0x1fff)
		packet_payload(&p, 64);
	else
		packet_udp(&p, 40000, 80);
	/* Only the first fragment has the transport protocol's header. */
	p.data[p.next_at] = 17;
	packet_end(&p);
	return parse_packet(&p);
}

TH_TEST(first_fragments_have_ports_and_the_others_an_id)
{
	struct parsed first = parse_fragment(PACKET_MORE_FRAGMENTS, 7, 0);
	struct parsed middle =
		parse_fragment(PACKET_MORE_FRAGMENTS | 185, 7, 0);
	struct parsed last = parse_fragment(370, 7, 0);
	struct parsed other_id = parse_fragment(370, 8, 0);
	struct parsed other_target = parse_fragment(370, 7, 1);

	assert_int_equal(first.kind, NATRA_PARSED_IP);
	assert_int_equal(first.res.tuple.fragment, 1);
	assert_int_equal(first.res.tuple.ports, ports_of(40000, 80));
	assert_int_equal(last.res.tuple.ports, 0);
	assert_true(same_flow(&middle, &last));
	assert_true(same_flow(&middle, &other_id));
	assert_false(same_flow(&middle, &other_target));
	assert_int_equal(first.res.fragment_id, last.res.fragment_id);
	assert_int_equal(first.res.fragment_id, middle.res.fragment_id);
	assert_int_not_equal(first.res.fragment_id, other_id.res.fragment_id);
}

/* That of IPv6 is in test_parse_ipv6.c. All pieces of a datagram have it as their protocol. */
TH_TEST(authentication_header_is_looked_behind)
{
	struct parsed none, r;
	struct packet p;

	packet_make_tcp4(&p, 40000, 0, 100);
	none = parse_packet(&p);
	for (int times = 1; times <= 2; times++) {
		begin_ipv4(&p, &plain);
		for (int i = 0; i < times; i++)
			packet_extension(&p, 51, 24);
		packet_tcp(&p, 40000, 80, 20);
		packet_end(&p);
		r = parse_packet(&p);
		assert_int_equal(same_flow(&none, &r), times == 1);
		assert_int_equal(natra_gave_up(&r.res), times == 2);
		assert_int_equal(r.res.header_len,
				 14 + 20 + 24 + (times == 1 ? 20 : 0));
	}
	begin_ipv4(&p, &(struct packet_ip){.fragment = PACKET_MORE_FRAGMENTS});
	packet_extension(&p, 51, 24);
	packet_tcp(&p, 40000, 80, 20);
	packet_end(&p);
	assert_int_equal(parse_packet(&p).res.tuple.protocol, 51);
}

TH_TEST(dont_fragment_is_no_fragment)
{
	struct parsed df = parse_fragment(PACKET_DONT_FRAGMENT, 7, 0);
	struct parsed none = parse_fragment(0, 8, 0);

	assert_int_equal(df.res.tuple.fragment, 0);
	assert_true(same_flow(&df, &none));
}

TH_TEST(every_protocol_with_ports_has_them)
{
	static const struct {
		size_t header_len;
		uint32_t known_len;
		uint8_t number;
	} protocols[] = {
		{8, 8, 17},
		{8, 0, 136},
		{12, 12, 132},
		{16, 0, 33},
	};
	struct packet p;
	struct parsed r;

	for (size_t i = 0; i < TH_LEN(protocols); i++) {
		begin_ipv4(&p, &plain);
		packet_ports(&p, protocols[i].number, 1234, 53,
			     protocols[i].header_len);
		packet_end(&p);
		r = parse_packet(&p);
		assert_int_equal(r.kind, NATRA_PARSED_IP);
		assert_int_equal(r.res.tuple.protocol, protocols[i].number);
		assert_int_equal(r.res.tuple.ports, ports_of(1234, 53));
		assert_int_equal(r.res.header_len, 34 + protocols[i].known_len);
	}
}

TH_TEST(other_protocols_have_no_ports)
{
	static const uint8_t protocols[] = {2, 4, 41, 47, 50, 103, 253};
	struct packet p;
	struct parsed r;

	for (size_t i = 0; i < TH_LEN(protocols); i++) {
		begin_ipv4(&p, &plain);
		packet_ports(&p, protocols[i], 1234, 53, 24);
		packet_end(&p);
		r = parse_packet(&p);
		assert_int_equal(r.kind, NATRA_PARSED_IP);
		assert_int_equal(r.res.tuple.protocol, protocols[i]);
		assert_int_equal(r.res.tuple.ports, 0);
		assert_int_equal(r.res.header_len, 34);
	}
}

TH_TEST(header_length_counts_tcp_options)
{
	struct packet p;

	for (size_t len = 20; len <= 60; len += 4) {
		begin_ipv4(&p, &plain);
		packet_tcp(&p, 40000, 80, len);
		packet_payload(&p, 100);
		packet_end(&p);
		assert_int_equal(parse_packet(&p).res.header_len, 34 + len);
	}
}

/* A packet is cut to each length; it is judged by the headers that are left. */
TH_TEST(truncated_packet_is_still_judged)
{
	struct packet p;
	struct parsed whole, r;

	begin_ipv4(&p, &(struct packet_ip){.options = 2});
	packet_tcp(&p, 40000, 80, 20);
	packet_end(&p);
	whole = parse_packet(&p);
	for (size_t len = 0; len < p.len; len++) {
		r = parse_bytes(&p, 0, len, true);
		if (len < 34) {
			assert_int_equal(r.kind, NATRA_PARSED_OPAQUE);
		} else {
			assert_int_equal(r.kind, NATRA_PARSED_IP);
			assert_int_equal(r.res.tuple.protocol, 6);
			assert_int_equal(same_flow(&whole, &r), len >= 42 + 4);
		}
	}
}

TH_TEST(truncated_vlan_tag_is_opaque)
{
	struct packet p;

	packet_begin(&p);
	packet_ethernet(&p);
	packet_vlan(&p, 0x8100, 1);
	packet_ipv4(&p, &plain);
	packet_end(&p);
	for (size_t len = 14; len <= 18; len++)
		assert_int_equal(parse_bytes(&p, 0, len, true).kind,
				 NATRA_PARSED_OPAQUE);
}

TH_MAIN(NULL, NULL)
