/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"
#include "parsing.h"

#define L3_END6 (14 + 40)

/* Fails unless the packet is of this flow and has headers of this length. */
static void is_of(const struct parsed *flow, const struct packet *p,
		  size_t header_len)
{
	struct parsed r = parse_packet(p);

	assert_true(same_flow(flow, &r));
	assert_int_equal(r.res.header_len, header_len);
}

/* Returns what is read of a packet of these words, see packet_of. */
#define PARSE(...) parse_one(packet_of(__VA_ARGS__))

static struct parsed parse_one(struct packet p)
{
	return parse_packet(&p);
}

static struct parsed plain(int version)
{
	return PARSE("eth ip%d tcp pay:100", version);
}

TH_TEST(tcp_has_addresses_ports_and_header_length)
{
	for (int version = 4; version <= 6; version += 2) {
		struct packet p =
			packet_of("eth ip%d tcp:20:40000 pad:200", version);
		const size_t len = version == 4 ? 4 : 16;
		const size_t at = 14 + (version == 4 ? 12 : 8);
		struct parsed r = parse_packet(&p);
		uint8_t zero[16] = {0};

		assert_int_equal(r.kind, NATRA_PARSED_IP);
		assert_int_equal(r.res.tuple.version, version);
		assert_int_equal(r.res.tuple.protocol, 6);
		assert_int_equal(r.res.tuple.fragment, 0);
		assert_int_equal(r.res.tuple.ports, ports_of(40000, 80));
		assert_memory_equal(r.res.tuple.saddr, p.data + at, len);
		assert_memory_equal(r.res.tuple.daddr, p.data + at + len, len);
		assert_memory_equal((uint8_t *)r.res.tuple.saddr + len, zero,
				    16 - len);
		assert_memory_equal((uint8_t *)r.res.tuple.daddr + len, zero,
				    16 - len);
		assert_int_equal(r.res.header_len, at + 2 * len + 20);
	}
}

TH_TEST(device_without_ethernet_gives_the_same_flow)
{
	struct packet p = packet_of("eth ip4 tcp pay:100");
	struct parsed l2 = parse_packet(&p);
	struct parsed l3 = parse_bytes(&p, 14, p.len - 14, false);

	assert_int_equal(l3.kind, NATRA_PARSED_IP);
	assert_true(same_flow(&l2, &l3));
	assert_int_equal(l3.res.header_len, 40);
	for (unsigned int version = 0; version < 16; version++) {
		p.data[14] = (uint8_t)(version << 4 | 5);
		assert_int_equal(parse_bytes(&p, 14, p.len - 14, false).kind,
				 version == 4 || version == 6
					 ? NATRA_PARSED_IP
					 : NATRA_PARSED_OPAQUE);
	}
	assert_int_equal(parse_bytes(&p, 0, 0, false).kind,
			 NATRA_PARSED_OPAQUE);
}

/* What is of the flow of a plain packet, and the length of its headers. */
TH_TEST(what_is_looked_behind_does_not_change_the_flow)
{
	static const struct {
		int version;
		const char *layers;
		size_t header_len;
	} rows[] = {
		{4, "eth vlan:100 ip4 tcp", 58},
		{4, "eth svlan:100 ip4 tcp", 58},
		{4, "eth vlan vlan ip4 tcp", 62},
		{4, "eth svlan svlan ip4 tcp", 62},
		{4, "eth ip4 ext:51:24 tcp", 54 + 24},
		{6, "eth ip6 tcp", L3_END6 + 20},
		{6, "eth ip6 ext:0:8 tcp", L3_END6 + 8 + 20},
		{6, "eth ip6 ext:0:8 ext:60:24 tcp", L3_END6 + 32 + 20},
		{6, "eth ip6 ext:0:8 ext:60:24 ext:43:16 tcp",
		 L3_END6 + 48 + 20},
		{6, "eth ip6 ext:0:8 ext:60:24 ext:43:16 ext:51:28 tcp",
		 L3_END6 + 76 + 20},
		{6, "eth svlan:5 vlan:6 ip6 ext:43:40 tcp:32",
		 L3_END6 + 8 + 40 + 32},
	};

	for (size_t i = 0; i < TH_LEN(rows); i++) {
		const struct parsed none = plain(rows[i].version);
		const struct packet p = packet_of("%s", rows[i].layers);

		is_of(&none, &p, rows[i].header_len);
	}
}

TH_TEST(length_of_each_header_counts)
{
	const struct parsed v4 = plain(4), v6 = plain(6);
	struct packet p;

	for (size_t words = 1; words <= 10; words++) {
		p = packet_of("eth ip4:o%zu tcp", words);
		is_of(&v4, &p, 54 + 4 * words);
	}
	for (size_t len = 20; len <= 60; len += 4) {
		p = packet_of("eth ip4 tcp:%zu pay:100", len);
		is_of(&v4, &p, 34 + len);
	}
	/* That of authentication is in words. */
	for (size_t len = 12; len <= 64; len += 4) {
		p = packet_of("eth ip6 ext:51:%zu tcp", len);
		is_of(&v6, &p, L3_END6 + len + 20);
	}
}

TH_TEST(traffic_class_and_flow_label_are_no_identity)
{
	const struct parsed none = plain(6);
	struct packet p = packet_of("eth ip6:t0xff tcp");

	p.data[16] = 0xab;
	p.data[17] = 0xcd;
	is_of(&none, &p, L3_END6 + 20);
}

TH_TEST(three_vlan_tags_are_one_opaque_flow)
{
	const struct natra_tuple zero = {0};
	struct parsed r = PARSE("eth vlan:0 vlan:1 vlan:2 ip4 tcp");

	assert_int_equal(r.kind, NATRA_PARSED_OPAQUE);
	assert_memory_equal(&r.res.tuple, &zero, sizeof(zero));
}

static struct parsed parse_type(unsigned int type, int tags)
{
	static const char *const words[] = {"", "svlan:0", "svlan:0 vlan:1"};

	return PARSE("eth %s type:%u pay:100", words[tags], type);
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

/* Type and version must tell the same. The traffic class of the last packet has the bits that
 * would be a header length in IPv4. */
TH_TEST(what_is_no_ip_is_opaque)
{
	static const struct {
		const char *layers;
		uint16_t type;
	} rows[] = {
		{"eth ip4 tcp", 0x86dd},
		{"eth ip6 tcp", 0x0800},
		{"eth ip6:t0x50 tcp", 0x0800},
	};
	struct packet p;

	for (size_t i = 0; i < TH_LEN(rows); i++) {
		p = packet_of("%s", rows[i].layers);
		p.type_at = 12;
		packet_type(&p, rows[i].type);
		assert_int_equal(parse_packet(&p).kind, NATRA_PARSED_OPAQUE);
	}
	/* A header shorter than IPv4 has. */
	for (uint8_t words = 0; words < 5; words++) {
		p = packet_of("eth ip4 tcp");
		p.data[14] = (uint8_t)(0x40 | words);
		assert_int_equal(parse_packet(&p).kind, NATRA_PARSED_OPAQUE);
	}
	p = packet_of("eth vlan ip4");
	for (size_t len = 14; len <= 18; len++)
		assert_int_equal(parse_bytes(&p, 0, len, true).kind,
				 NATRA_PARSED_OPAQUE);
}

/* Pieces of a datagram: the first, one in the middle, the last, one of another datagram. */
static void pieces_are_told(const struct parsed *r)
{
	assert_int_equal(r[0].kind, NATRA_PARSED_IP);
	assert_int_equal(r[0].res.tuple.fragment, 1);
	assert_int_equal(r[0].res.tuple.protocol, 17);
	assert_int_equal(r[0].res.tuple.ports, ports_of(1000, 53));
	assert_int_equal(r[2].res.tuple.ports, 0);
	assert_true(same_flow(&r[1], &r[2]));
	assert_true(same_flow(&r[1], &r[3]));
	assert_int_equal(r[0].res.fragment_id, r[2].res.fragment_id);
	assert_int_equal(r[0].res.fragment_id, r[1].res.fragment_id);
	assert_int_not_equal(r[0].res.fragment_id, r[3].res.fragment_id);
}

/* Only the first one has the transport protocol's header. */
TH_TEST(first_fragments_have_ports_and_the_others_an_id)
{
	const struct parsed v4[] = {
		PARSE("eth ip4:f0x2000:i7 udp"),
		PARSE("eth ip4:f0x20b9:i7 next:17 pay:64"),
		PARSE("eth ip4:f370:i7 next:17 pay:64"),
		PARSE("eth ip4:f370:i8 next:17 pay:64"),
	};
	struct parsed other = PARSE("eth ip4:f370:i7:d1 next:17 pay:64");

	pieces_are_told(v4);
	assert_false(same_flow(&v4[1], &other));
	for (int ahead = 0; ahead < 2; ahead++) {
		const char *ext = ahead ? "ext:0:8" : "";
		const struct parsed v6[] = {
			PARSE("eth ip6 %s frag:1:0x10203 udp", ext),
			PARSE("eth ip6 %s frag:1449:0x10203 next:17 pay:64",
			      ext),
			PARSE("eth ip6 %s frag:2896:0x10203 next:17 pay:64",
			      ext),
			PARSE("eth ip6 %s frag:2896:0x20203 next:17 pay:64",
			      ext),
		};

		pieces_are_told(v6);
	}
}

TH_TEST(what_is_whole_is_no_fragment)
{
	struct parsed v4 = PARSE("eth ip4 udp"), v6 = PARSE("eth ip6 udp");
	struct packet p = packet_of("eth ip4:f0x4000 udp"); /* don't fragment */

	is_of(&v4, &p, 14 + 20 + 8);
	assert_int_equal(v4.res.tuple.fragment, 0);
	p = packet_of("eth ip6 frag:0:99 udp");
	is_of(&v6, &p, v6.res.header_len + 8);
	assert_int_equal(v6.res.tuple.fragment, 0);
	p = packet_of("eth ip6 frag:6:99 udp"); /* reserved bits */
	is_of(&v6, &p, v6.res.header_len + 8);
}

/* All pieces of a datagram have authentication as their protocol. */
TH_TEST(parser_gives_up_behind_too_many_headers)
{
	struct parsed none = plain(4), r = PARSE("eth ip4 ext:51:24 tcp");
	struct packet p;

	assert_false(natra_gave_up(&r.res));
	r = PARSE("eth ip4 ext:51:24 ext:51:24 tcp");
	assert_false(same_flow(&none, &r));
	assert_true(natra_gave_up(&r.res));
	assert_int_equal(r.res.header_len, 14 + 20 + 24);
	r = PARSE("eth ip4:f0x2000 ext:51:24 tcp");
	assert_int_equal(r.res.tuple.protocol, 51);
	for (int headers = 0; headers < 7; headers++) {
		packet_begin_ipv6(&p, &(struct packet_ip){0});
		for (int i = 0; i < headers; i++)
			packet_extension(&p, 60, 8);
		packet_tcp(&p, (uint16_t)(1000 + headers), 80, 20);
		packet_end(&p);
		r = parse_packet(&p);
		assert_int_equal(natra_gave_up(&r.res), headers > 4);
		if (headers == 5)
			none = r;
		/* They are one flow for each pair of addresses. */
		if (headers == 6)
			assert_true(same_flow(&none, &r));
	}
	assert_int_equal(r.kind, NATRA_PARSED_IP);
	assert_int_equal(r.res.tuple.protocol, 60);
	assert_int_equal(r.res.tuple.ports, 0);
	p.data[14] = 0x50;
	r = parse_packet(&p);
	assert_true(natra_gave_up(&r.res));
}

/* Segments do not have the option that makes BIG TCP's packet a jumbogram. What only looks
 * like it stays in all of them: the kernel finds it by the same four marks. */
TH_TEST(jumbo_header_is_not_of_the_segments)
{
	static const struct {
		uint8_t protocol, option, payload_len;
		size_t len;
		__u32 jumbo_len;
	} rows[] = {
		{6, 0xc2, 0, 8, 8},  {6, 1, 0, 8, 0},     {6, 0xc2, 9, 8, 0},
		{17, 0xc2, 0, 8, 0}, {6, 0xc2, 0, 16, 0},
	};

	for (size_t i = 0; i < TH_LEN(rows); i++) {
		struct packet p = packet_of("eth ip6 ext:0:%zu ports:%u:20",
					    rows[i].len, rows[i].protocol);
		struct parsed r;

		p.data[L3_END6 + 2] = rows[i].option;
		p.data[L3_END6 + 3] = 4;
		p.data[14 + 4] = 0;
		p.data[14 + 5] = rows[i].payload_len;
		r = parse_packet(&p);
		assert_int_equal(natra_jumbo_len(&r.res, NATRA_JUMBO_MIN),
				 rows[i].jumbo_len);
		assert_int_equal(natra_jumbo_len(&r.res, NATRA_JUMBO_MIN - 1),
				 0);
	}
}

TH_TEST(some_protocols_have_ports)
{
	static const struct {
		uint8_t number;
		size_t header_len;
		uint32_t known_len;
		bool has_ports;
	} rows[] = {
		{17, 8, 8, true},    {136, 8, 0, true},   {132, 12, 12, true},
		{33, 16, 0, true},   {2, 24, 0, false},   {4, 24, 0, false},
		{41, 24, 0, false},  {47, 24, 0, false},  {50, 24, 0, false},
		{103, 24, 0, false}, {253, 24, 0, false},
	};

	for (size_t i = 0; i < 2 * TH_LEN(rows); i++) {
		const size_t row = i / 2;
		const int version = i % 2 ? 6 : 4;
		struct parsed r = PARSE("eth ip%d ports:%u:%zu", version,
					rows[row].number, rows[row].header_len);

		assert_int_equal(r.kind, NATRA_PARSED_IP);
		assert_int_equal(r.res.tuple.protocol, rows[row].number);
		assert_int_equal(r.res.tuple.ports,
				 rows[row].has_ports ? ports_of(1000, 53) : 0);
		assert_int_equal(r.res.header_len, (version == 4 ? 34 : 54) +
							   rows[row].known_len);
	}
}

/* A packet is cut to each length; it is judged by the headers that are left. */
TH_TEST(truncated_packet_is_still_judged)
{
	static const struct {
		const char *layers;
		size_t fixed, ports;
	} rows[] = {
		{"eth ip4:o2 tcp", 34, 42 + 4},
		{"eth ip6 ext:0:16 ext:51:24 tcp", L3_END6, L3_END6 + 40 + 4},
	};

	for (size_t i = 0; i < TH_LEN(rows); i++) {
		struct packet p = packet_of("%s", rows[i].layers);
		struct parsed whole = parse_packet(&p);

		for (size_t len = 0; len < p.len; len++) {
			struct parsed r = parse_bytes(&p, 0, len, true);

			assert_int_equal(r.kind, len < rows[i].fixed
							 ? NATRA_PARSED_OPAQUE
							 : NATRA_PARSED_IP);
			assert_int_equal(same_flow(&whole, &r),
					 len >= rows[i].ports);
			if (i == 0 && len >= rows[i].fixed)
				assert_int_equal(r.res.tuple.protocol, 6);
		}
	}
}

/* An extension header claims to be longer than the packet. */
TH_TEST(extension_header_beyond_the_end_has_no_ports)
{
	struct packet p = packet_of("eth ip6 ext:0:8 tcp");
	struct parsed r;

	p.data[L3_END6 + 1] = 255;
	r = parse_packet(&p);
	assert_int_equal(r.kind, NATRA_PARSED_IP);
	assert_int_equal(r.res.tuple.protocol, 6);
	assert_int_equal(r.res.tuple.ports, 0);
}

TH_TEST(only_a_neighbour_sends_neighbour_discovery)
{
	for (unsigned int type = 0; type < 256; type++) {
		const int kind = type >= 133 && type <= 137
					 ? NATRA_PARSED_CONTROL
					 : NATRA_PARSED_IP;

		assert_int_equal(PARSE("eth ip6:h255 echo:58:%u", type).kind,
				 kind);
		assert_int_equal(
			PARSE("eth ip6:h255 ext:60:8 echo:58:%u", type).kind,
			kind);
		assert_int_equal(PARSE("eth ip6:h254 echo:58:%u", type).kind,
				 NATRA_PARSED_IP);
	}
	assert_int_equal(PARSE("eth ip6:h255 frag:1:7 echo:58:135").kind,
			 NATRA_PARSED_IP);
}

TH_TEST(flows_inside_of_wireguard_are_told_apart)
{
	static const struct {
		const char *layers;
		uint8_t inner;
	} rows[] = {
		{"eth ip4 udp:51820 hex:04000000 pay:28", 7},
		{"eth ip6 udp:51820 hex:04000000 pay:28", 7},
		{"eth ip4 udp:51820 hex:01000000 pay:28", 0},
		{"eth ip4 ports:136:8:51820 hex:04000000 pay:28", 0},
		{"eth ip4:f0x2000 udp:51820 hex:04000000 pay:28", 0},
	};

	for (size_t i = 0; i < TH_LEN(rows); i++) {
		struct packet p = packet_of("%s", rows[i].layers);
		struct th_bytes bytes = {
			.data = p.data, .len = p.len, .inner = 7};
		struct natra_parsed_packet res;

		(void)natra_parse(&bytes, true, &res);
		assert_int_equal(res.tuple.inner, rows[i].inner);
	}
}

TH_MAIN(NULL, NULL)
