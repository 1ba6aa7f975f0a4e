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

static void tcp_has_addresses_ports_and_header_length(void **state)
{
	struct packet p;
	struct parsed r;

	(void)state;
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

static void traffic_class_and_flow_label_are_no_identity(void **state)
{
	struct packet p;
	struct parsed none = parse_plain(), r;

	(void)state;
	packet_make_tcp6(&p, 40000, 0xff, 200);
	p.data[16] = 0xab;
	p.data[17] = 0xcd;
	r = parse_packet(&p);
	assert_true(same_flow(&none, &r));
}

static void up_to_four_extension_headers_are_looked_behind(void **state)
{
	static const uint8_t numbers[] = {HOPOPTS, DSTOPTS, ROUTING, AH};
	static const size_t lens[] = {8, 24, 16, 28};
	struct parsed none = parse_plain(), r;
	struct packet p;

	(void)state;
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

static void five_extension_headers_are_one_flow_per_address_pair(void **state)
{
	struct parsed r[2];
	struct packet p;

	(void)state;
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

static void authentication_header_is_measured_in_words(void **state)
{
	struct parsed none = parse_plain(), r;
	struct packet p;

	(void)state;
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

static void first_fragments_have_ports_and_the_others_an_id(void **state)
{
	(void)state;
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

static void atomic_fragment_is_a_whole_packet(void **state)
{
	struct parsed atomic = parse_fragment(0, 99, 0), none;
	struct packet p;

	(void)state;
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
static void jumbo_header_is_not_of_the_segments(void **state)
{
	static const struct {
		uint8_t protocol, option, payload_len;
		size_t len;
		__u32 jumbo_len;
	} rows[] = {
		{6, 0xc2, 0, 8, 8},  {6, 1, 0, 8, 0},     {6, 0xc2, 9, 8, 0},
		{17, 0xc2, 0, 8, 0}, {6, 0xc2, 0, 16, 0},
	};

	(void)state;
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
static void parser_says_that_it_gave_up(void **state)
{
	struct packet p;
	struct parsed r;

	(void)state;
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

static void reserved_bits_make_no_fragment(void **state)
{
	struct parsed none = parse_fragment(0, 99, 0);
	struct parsed reserved = parse_fragment(6, 99, 0);

	(void)state;
	assert_true(same_flow(&none, &reserved));
}

static void every_protocol_with_ports_has_them(void **state)
{
	static const uint8_t protocols[] = {17, 136, 132, 33};
	struct packet p;
	struct parsed r;

	(void)state;
	for (size_t i = 0; i < TH_LEN(protocols); i++) {
		begin(&p);
		packet_ports(&p, protocols[i], 1234, 53, 16);
		packet_end(&p);
		r = parse_packet(&p);
		assert_int_equal(r.res.tuple.protocol, protocols[i]);
		assert_int_equal(r.res.tuple.ports, ports_of(1234, 53));
	}
}

static void vlan_tag_and_extension_headers_go_together(void **state)
{
	struct parsed none = parse_plain(), r;
	struct packet p;

	(void)state;
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

static void truncated_packet_is_still_judged(void **state)
{
	struct parsed whole, r;
	struct packet p;

	(void)state;
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
static void extension_header_beyond_the_end_has_no_ports(void **state)
{
	struct packet p;
	struct parsed r;

	(void)state;
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

static void only_a_neighbour_sends_neighbour_discovery(void **state)
{
	struct packet p;

	(void)state;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tcp_has_addresses_ports_and_header_length),
		cmocka_unit_test(traffic_class_and_flow_label_are_no_identity),
		cmocka_unit_test(
			up_to_four_extension_headers_are_looked_behind),
		cmocka_unit_test(
			five_extension_headers_are_one_flow_per_address_pair),
		cmocka_unit_test(authentication_header_is_measured_in_words),
		cmocka_unit_test(
			first_fragments_have_ports_and_the_others_an_id),
		cmocka_unit_test(atomic_fragment_is_a_whole_packet),
		cmocka_unit_test(jumbo_header_is_not_of_the_segments),
		cmocka_unit_test(parser_says_that_it_gave_up),
		cmocka_unit_test(reserved_bits_make_no_fragment),
		cmocka_unit_test(every_protocol_with_ports_has_them),
		cmocka_unit_test(vlan_tag_and_extension_headers_go_together),
		cmocka_unit_test(truncated_packet_is_still_judged),
		cmocka_unit_test(extension_header_beyond_the_end_has_no_ports),
		cmocka_unit_test(only_a_neighbour_sends_neighbour_discovery),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
