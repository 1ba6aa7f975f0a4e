/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"
#include "parsing.h"

#define HOPOPTS 0
#define ROUTING 43
#define AH      51
#define DSTOPTS 60

#define L3_END (14 + 40)

static const struct packet_ip plain;

static void begin(struct packet *p)
{
	packet_begin_ipv6(p, &plain);
}

static struct parsed parse_plain(void)
{
	struct packet p;

	packet_make_tcp6(&p, 40000, 0, 200);
	return parse_packet(&p);
}

TH_TEST(tcp_has_addresses_ports_and_header_length)
{
	struct packet p;
	struct parsed r;

	packet_make_tcp6(&p, 40000, 0, 200);
	r = parse_packet(&p);
	assert_int_equal(r.kind, NATRA_PARSED_IP);
	assert_int_equal(r.res.tuple.version, 6);
	assert_int_equal(r.res.tuple.protocol, 6);
	assert_int_equal(r.res.tuple.fragment, 0);
	assert_int_equal(r.res.tuple.ports, ports_of(40000, 80));
	assert_memory_equal(r.res.tuple.saddr, p.data + 14 + 8, 16);
	assert_memory_equal(r.res.tuple.daddr, p.data + 14 + 24, 16);
	assert_int_equal(r.res.header_len, L3_END + 20);
}

TH_TEST(traffic_class_and_flow_label_are_no_identity)
{
	struct packet p;
	struct parsed none = parse_plain(), r;

	packet_make_tcp6(&p, 40000, 0xff, 200);
	p.data[16] = 0xab;
	p.data[17] = 0xcd;
	r = parse_packet(&p);
	assert_true(same_flow(&none, &r));
}

TH_TEST(up_to_four_extension_headers_are_looked_behind)
{
	static const uint8_t numbers[] = {HOPOPTS, DSTOPTS, ROUTING, AH};
	static const size_t lens[] = {8, 24, 16, 28};
	struct parsed none = parse_plain(), r;
	struct packet p;

	for (size_t count = 0; count <= 4; count++) {
		size_t sum = 0;

		begin(&p);
		for (size_t i = 0; i < count; i++) {
			packet_extension(&p, numbers[i], lens[i]);
			sum += lens[i];
		}
		packet_tcp(&p, 40000, 80, 20);
		packet_end(&p);
		r = parse_packet(&p);
		assert_true(same_flow(&none, &r));
		assert_int_equal(r.res.header_len, L3_END + sum + 20);
	}
}

TH_TEST(five_extension_headers_are_one_flow_per_address_pair)
{
	struct parsed r[2];
	struct packet p;

	for (int i = 0; i < 2; i++) {
		begin(&p);
		for (int j = 0; j < 5; j++)
			packet_extension(&p, DSTOPTS, 8);
		packet_tcp(&p, (uint16_t)(40000 + i), 80, 20);
		packet_end(&p);
		r[i] = parse_packet(&p);
		assert_int_equal(r[i].kind, NATRA_PARSED_IP);
		assert_int_equal(r[i].res.tuple.protocol, DSTOPTS);
		assert_int_equal(r[i].res.tuple.ports, 0);
	}
	assert_true(same_flow(&r[0], &r[1]));
}

TH_TEST(authentication_header_is_measured_in_words)
{
	struct parsed none = parse_plain(), r;
	struct packet p;

	for (size_t len = 12; len <= 64; len += 4) {
		begin(&p);
		packet_extension(&p, AH, len);
		packet_tcp(&p, 40000, 80, 20);
		packet_end(&p);
		r = parse_packet(&p);
		assert_true(same_flow(&none, &r));
		assert_int_equal(r.res.header_len, L3_END + len + 20);
	}
}

/* `fragment` is the header's offset and flag; `ahead` bytes of hop-by-hop
 * options come first. */
static struct parsed parse_fragment(uint16_t fragment, uint32_t id,
				    size_t ahead)
{
	struct packet p;

	begin(&p);
	if (ahead)
		packet_extension(&p, HOPOPTS, ahead);
	packet_ipv6_fragment(&p, fragment, id);
	p.data[p.next_at] = 17;
	if (fragment & 0xfff8)
		packet_payload(&p, 64);
	else
		packet_udp(&p, 40000, 80);
	packet_end(&p);
	return parse_packet(&p);
}

TH_TEST(first_fragments_have_ports_and_the_others_an_id)
{
	for (size_t ahead = 0; ahead <= 8; ahead += 8) {
		struct parsed first = parse_fragment(1, 0x10203, ahead);
		struct parsed middle = parse_fragment(1448 | 1, 0x10203, ahead);
		struct parsed last = parse_fragment(2896, 0x10203, ahead);
		struct parsed other = parse_fragment(2896, 0x20203, ahead);

		assert_int_equal(first.kind, NATRA_PARSED_IP);
		assert_int_equal(first.res.tuple.fragment, 1);
		assert_int_equal(first.res.tuple.protocol, 17);
		assert_int_equal(first.res.tuple.ports, ports_of(40000, 80));
		assert_int_equal(last.res.tuple.ports, 0);
		assert_true(same_flow(&middle, &last));
		assert_true(same_flow(&middle, &other));
		assert_int_equal(first.res.fragment_id, last.res.fragment_id);
		assert_int_equal(first.res.fragment_id, middle.res.fragment_id);
		assert_int_not_equal(first.res.fragment_id,
				     other.res.fragment_id);
	}
}

TH_TEST(atomic_fragment_is_a_whole_packet)
{
	struct parsed atomic = parse_fragment(0, 99, 0), none;
	struct packet p;

	begin(&p);
	packet_udp(&p, 40000, 80);
	packet_end(&p);
	none = parse_packet(&p);
	assert_int_equal(atomic.res.tuple.fragment, 0);
	assert_true(same_flow(&none, &atomic));
	assert_int_equal(atomic.res.header_len, none.res.header_len + 8);
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
		struct parsed r;
		struct packet p;

		begin(&p);
		packet_extension(&p, HOPOPTS, rows[i].len);
		p.data[p.len - rows[i].len + 2] = rows[i].option;
		p.data[p.len - rows[i].len + 3] = 4;
		packet_ports(&p, rows[i].protocol, 40000, 80, 20);
		packet_end(&p);
		p.data[14 + 4] = 0;
		p.data[14 + 5] = rows[i].payload_len;
		r = parse_packet(&p);
		assert_int_equal(natra_jumbo_len(&r.res, NATRA_JUMBO_MIN),
				 rows[i].jumbo_len);
		assert_int_equal(natra_jumbo_len(&r.res, NATRA_JUMBO_MIN - 1),
				 0);
	}
}

/* The parser does not see where layer 4 begins. */
TH_TEST(parser_says_that_it_gave_up)
{
	struct packet p;
	struct parsed r;

	for (int headers = 0; headers < 7; headers++) {
		begin(&p);
		for (int i = 0; i < headers; i++)
			packet_extension(&p, HOPOPTS, 8);
		packet_tcp(&p, 40000, 80, 20);
		packet_end(&p);
		r = parse_packet(&p);
		assert_int_equal(natra_gave_up(&r.res), headers > 4);
	}
	p.data[14] = 0x50;
	r = parse_packet(&p);
	assert_true(natra_gave_up(&r.res));
}

TH_TEST(reserved_bits_make_no_fragment)
{
	struct parsed none = parse_fragment(0, 99, 0);
	struct parsed reserved = parse_fragment(6, 99, 0);

	assert_true(same_flow(&none, &reserved));
}

TH_TEST(every_protocol_with_ports_has_them)
{
	static const uint8_t protocols[] = {17, 136, 132, 33};
	struct packet p;
	struct parsed r;

	for (size_t i = 0; i < TH_LEN(protocols); i++) {
		begin(&p);
		packet_ports(&p, protocols[i], 1234, 53, 16);
		packet_end(&p);
		r = parse_packet(&p);
		assert_int_equal(r.res.tuple.protocol, protocols[i]);
		assert_int_equal(r.res.tuple.ports, ports_of(1234, 53));
	}
}

TH_TEST(vlan_tag_and_extension_headers_go_together)
{
	struct parsed none = parse_plain(), r;
	struct packet p;

	packet_begin(&p);
	packet_ethernet(&p);
	packet_vlan(&p, 0x88a8, 5);
	packet_vlan(&p, 0x8100, 6);
	packet_ipv6(&p, &plain);
	packet_extension(&p, ROUTING, 40);
	packet_tcp(&p, 40000, 80, 32);
	packet_end(&p);
	r = parse_packet(&p);
	assert_true(same_flow(&none, &r));
	assert_int_equal(r.res.header_len, L3_END + 8 + 40 + 32);
}

TH_TEST(truncated_packet_is_still_judged)
{
	struct parsed whole, r;
	struct packet p;

	begin(&p);
	packet_extension(&p, HOPOPTS, 16);
	packet_extension(&p, AH, 24);
	packet_tcp(&p, 40000, 80, 20);
	packet_end(&p);
	whole = parse_packet(&p);
	for (size_t len = 0; len < p.len; len++) {
		r = parse_bytes(&p, 0, len, true);
		if (len < L3_END) {
			assert_int_equal(r.kind, NATRA_PARSED_OPAQUE);
		} else {
			assert_int_equal(r.kind, NATRA_PARSED_IP);
			assert_int_equal(same_flow(&whole, &r),
					 len >= L3_END + 40 + 4);
		}
	}
}

/* An extension header claims to be longer than the packet. */
TH_TEST(extension_header_beyond_the_end_has_no_ports)
{
	struct packet p;
	struct parsed r;

	begin(&p);
	packet_extension(&p, HOPOPTS, 8);
	packet_tcp(&p, 40000, 80, 20);
	packet_end(&p);
	p.data[L3_END + 1] = 255;
	r = parse_packet(&p);
	assert_int_equal(r.kind, NATRA_PARSED_IP);
	assert_int_equal(r.res.tuple.protocol, 6);
	assert_int_equal(r.res.tuple.ports, 0);
}

static int kind_of_discovery(uint8_t type, uint8_t hop_limit, bool extended)
{
	struct packet p;

	begin(&p);
	if (extended)
		packet_extension(&p, DSTOPTS, 8);
	packet_echo(&p, 58, type, 0);
	packet_end(&p);
	p.data[14 + 7] = hop_limit;
	return parse_packet(&p).kind;
}

TH_TEST(only_a_neighbour_sends_neighbour_discovery)
{
	struct packet p;

	for (unsigned int type = 0; type < 256; type++) {
		const int kind = type >= 133 && type <= 137
					 ? NATRA_PARSED_CONTROL
					 : NATRA_PARSED_IP;

		assert_int_equal(kind_of_discovery((uint8_t)type, 255, false),
				 kind);
		assert_int_equal(kind_of_discovery((uint8_t)type, 255, true),
				 kind);
		assert_int_equal(kind_of_discovery((uint8_t)type, 254, false),
				 NATRA_PARSED_IP);
	}
	begin(&p);
	packet_ipv6_fragment(&p, 1, 7);
	packet_echo(&p, 58, 135, 0);
	packet_end(&p);
	p.data[14 + 7] = 255;
	assert_int_equal(parse_packet(&p).kind, NATRA_PARSED_IP);
}

TH_MAIN(NULL, NULL)
