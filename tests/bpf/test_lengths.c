/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check the length that natra counts for a packet: its length on the
 * wire, with GSO, tunnels and tags. */
#include "cm.h"

#include <string.h>

#include "natra_sketch.h"
#include "progrun.h"
#include "util/cleanup.h"

static const struct packet_ip plain;

static const enum stub_kind programs[] = {STUB_RX, STUB_TX, STUB_EDT};

TH_TEST(length_on_the_wire_is_told_by_the_kernel_at_egress)
{
	const struct th_context context = {
		.wire_len = 1662, .gso_segs = 3, .gso_size = 500};
	const struct natra_limits limits = {0};
	struct th_result result;
	struct packet p;

	packet_make_tcp4(&p, 1000, 0, 54 + 1500);
	for (size_t i = 1; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);

		th_send(&run, &p, &context, &result);
		assert_int_equal(result.bytes, 1662);
		th_close(&run);
	}
}

TH_TEST(length_on_the_wire_is_worked_out_at_ingress)
{
	const struct natra_limits limits = {0};
	struct progrun run = th_load_kind(STUB_RX, &limits);
	struct th_context context = {
		.wire_len = 1999, .gso_segs = 3, .gso_size = 500};
	struct th_result result;
	struct packet p;

	packet_make_tcp4(&p, 1000, 0, 54 + 1500);
	th_send(&run, &p, &context, &result);
	assert_int_equal(result.bytes, 3 * (54 + 500));
	/* A packet can be injected with a GSO size but no number of
	 * segments. */
	context.gso_segs = 0;
	th_send(&run, &p, &context, &result);
	assert_int_equal(result.bytes, 3 * (54 + 500));
	packet_begin_ipv6(&p, &plain);
	packet_extension(&p, 0, 8);
	packet_extension(&p, 43, 24);
	packet_extension(&p, 51, 24);
	packet_extension(&p, 60, 16);
	packet_tcp(&p, 1000, 80, 20);
	packet_payload(&p, 1000);
	packet_end(&p);
	context.gso_segs = 2;
	th_send(&run, &p, &context, &result);
	assert_int_equal(result.bytes, 2 * (14 + 40 + 72 + 20 + 500));
	th_close(&run);
}

#define INNER_TCP (20 + 32)

/* Checks three segments of 500 bytes in a tunnel, with `overhead` bytes of
 * headers in front of the inner IP header, which `p` has already. */
static void check_tunnel(struct packet *p, uint32_t overhead)
{
	struct th_context context = {.gso_segs = 3, .gso_size = 500};
	const struct natra_limits limits = {0};
	struct th_result result;

	packet_ipv4(p, &plain);
	p->data[p->l3 + 2] = (INNER_TCP + 1500) >> 8;
	p->data[p->l3 + 3] = (INNER_TCP + 1500) & 0xff;
	packet_tcp(p, 1000, 80, 32);
	packet_payload(p, 1500);
	assert_int_equal(p->len, overhead + INNER_TCP + 1500);
	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);

		/* Before Linux 6.18 it leaves out what is inside. */
		context.wire_len = (uint32_t)p->len + 2 * 34;
		th_send(&run, p, &context, &result);
		assert_int_equal(result.bytes,
				 3 * (overhead + INNER_TCP + 500));
		th_close(&run);
	}
}

/* natra does not use the length fields of the outer headers. */
TH_TEST(segments_in_a_tunnel_have_its_headers_too)
{
	static const uint16_t ports[] = {4789, 8472, 6081};
	struct packet p;

	for (size_t i = 0; i < TH_LEN(ports); i++) {
		packet_begin_ipv4(&p, &plain);
		packet_udp(&p, 1000, ports[i]);
		packet_payload(&p, 8);
		memcpy(&p.data[p.len - 8], "\0\0\x65\x58\0\0\0", 8);
		packet_ethernet(&p);
		check_tunnel(&p, 14 + 20 + 8 + 8 + 14);
	}
	packet_begin_ipv6(&p, &plain);
	p.data[p.next_at] = 4;
	p.type_at = PACKET_NO_LAYER;
	check_tunnel(&p, 14 + 40);
	packet_begin_ipv4(&p, &plain);
	packet_ports(&p, 47, 0x2000, 0x0800, 8);
	check_tunnel(&p, 14 + 20 + 8);
}

TH_TEST(segments_have_the_headers_of_mpls_and_pppoe)
{
	struct packet p;

	packet_begin(&p);
	packet_ethernet(&p);
	packet_type(&p, 0x8847);
	p.type_at = PACKET_NO_LAYER;
	packet_payload(&p, 8);
	memcpy(&p.data[p.len - 8], "\0\1\0\x40\0\1\1\x40", 8);
	check_tunnel(&p, 14 + 8);
	packet_begin(&p);
	packet_ethernet(&p);
	packet_type(&p, 0x8864);
	p.type_at = PACKET_NO_LAYER;
	packet_payload(&p, 8);
	memcpy(&p.data[p.len - 8], "\x11\0\0\7\0\0\0\x21", 8);
	check_tunnel(&p, 14 + 8);
}

TH_TEST(tcp_options_are_in_every_segment)
{
	const struct natra_limits limits = {0};
	const struct th_context context = {.gso_segs = 3, .gso_size = 500};
	struct progrun run = th_load_kind(STUB_RX, &limits);
	struct th_result result;
	struct packet p;

	for (size_t len = 20; len <= 60; len += 4) {
		packet_begin_ipv4(&p, &plain);
		packet_tcp(&p, 1000, 80, len);
		packet_payload(&p, 1500);
		packet_end(&p);
		th_send(&run, &p, &context, &result);
		assert_int_equal(result.bytes, 3 * (14 + 20 + len + 500));
		packet_begin_ipv6(&p, &plain);
		packet_tcp(&p, 1000, 80, len);
		packet_payload(&p, 1500);
		packet_end(&p);
		th_send(&run, &p, &context, &result);
		assert_int_equal(result.bytes, 3 * (14 + 40 + len + 500));
	}
	th_close(&run);
}

/* Each program charges so much for the packet. */
static void check_all(const struct packet *p, const struct th_context *context,
		      uint32_t at_least, uint32_t at_most)
{
	const struct natra_limits limits = th_limits();
	struct th_result result;

	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);

		th_send(&run, p, context, &result);
		assert_in_range(result.bytes, at_least, at_most);
		th_close(&run);
	}
}

/* BIG TCP adds a jumbo header that no segment has. Packets of 64 kB and less keep it. */
TH_TEST(jumbo_header_is_of_the_segments_of_short_packets)
{
	const uint32_t wire = 3 * (14 + 40 + 8 + 20 + 500);
	/* After GRO the kernel takes the sequence number's first byte for the length of
	 * TCP's header: 60 bytes, and none for the jumbo header. */
	const struct th_context context = {.wire_len = wire + 2 * (60 - 8 - 20),
					   .gso_segs = 3,
					   .gso_size = 500};
	struct packet p;

	packet_begin_ipv6(&p, &plain);
	packet_extension(&p, 0, 8);
	p.data[p.len - 6] = 0xc2;
	p.data[p.len - 5] = 4;
	packet_tcp(&p, 1000, 80, 20);
	packet_payload(&p, 1500);
	packet_end(&p);
	p.data[14 + 4] = p.data[14 + 5] = 0; /* payload length */
	check_all(&p, &context, wire, wire);
}

/* After GRO the kernel takes what is behind IPv6's fixed header for payload. */
TH_TEST(extension_headers_are_in_every_segment)
{
	const uint32_t headers = 14 + 40 + 520 + 20;
	const struct th_context context = {.wire_len = headers + 1200 + 54 * 9,
					   .gso_segs = 10,
					   .gso_size = 120};
	struct packet p;

	packet_begin_ipv6(&p, &plain);
	packet_extension(&p, 60, 520);
	packet_tcp(&p, 1000, 80, 20);
	packet_payload(&p, 1200);
	packet_end(&p);
	check_all(&p, &context, 10 * (headers + 120), 10 * (headers + 120));
}

/* GSO looks for TCP behind the IP header, whatever that says of fragments. The last segment
 * is short: from their number alone the header would be shorter. */
TH_TEST(claim_to_be_a_fragment_hides_no_header)
{
	static const uint16_t claims[] = {PACKET_MORE_FRAGMENTS, 16};
	const uint32_t wire = 10 * (14 + 20 + 60) + 361;
	const struct th_context context = {.gso_segs = 10, .gso_size = 40};
	struct packet p;

	for (size_t i = 0; i < TH_LEN(claims); i++) {
		packet_begin_ipv4(&p,
				  &(struct packet_ip){.fragment = claims[i]});
		packet_tcp(&p, 1000, 80, 60);
		packet_payload(&p, 361);
		packet_end(&p);
		check_all(&p, &context, wire, wire);
	}
}

static void begin_extensions(struct packet *p)
{
	packet_begin_ipv6(p, &plain);
	for (int i = 0; i < 5; i++)
		packet_extension(p, 60, i < 4 ? 8 : 600);
	packet_tcp(p, 1000, 80, 20);
}

static void begin_tags(struct packet *p)
{
	packet_begin(p);
	packet_ethernet(p);
	for (uint16_t i = 0; i < 7; i++)
		packet_vlan(p, 0x8100, i);
	packet_ipv4(p, &plain);
	packet_tcp(p, 1000, 80, 60);
}

/* There is no EtherType of NSH in the parser, but in the kernel's GSO. */
static void begin_nsh(struct packet *p)
{
	packet_begin(p);
	packet_ethernet(p);
	packet_type(p, 0x894f);
	p->type_at = PACKET_NO_LAYER;
	packet_payload(p, 8);
	memcpy(&p->data[p->len - 8], "\x0f\xc2\1\1\0\0\0\0", 8);
	packet_ipv4(p, &plain);
	packet_tcp(p, 1000, 80, 60);
}

/* Headers that the parser does not find are charged as if they were as long as they can
 * be. If nobody has counted the segments, that is half of the packet. */
TH_TEST(what_the_parser_does_not_find_is_charged_at_least)
{
	static void (*const kinds[])(struct packet *) = {begin_extensions,
							 begin_tags, begin_nsh};

	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		struct th_context context = {.gso_segs = 10, .gso_size = 10};
		struct packet p;
		uint32_t wire;

		kinds[i](&p);
		wire = 10 * ((uint32_t)p.len + 10);
		packet_payload(&p, 100);
		packet_end(&p);
		check_all(&p, &context, wire, wire + 10 * 10);
		context.gso_segs = 0;
		check_all(&p, &context, wire, (uint32_t)(p.len * p.len));
	}
}

/* The kernel counts segments in 16 bits. */
TH_TEST(segments_that_the_kernel_has_not_counted_are_charged)
{
	const struct th_context context = {
		.wire_len = 54 + 1500, .gso_segs = 1, .gso_size = 500};
	struct packet p;

	packet_make_tcp4(&p, 1000, 0, 54 + 1500);
	check_all(&p, &context, 3 * (54 + 500), 3 * (54 + 500));
}

/* A GSO packet of two segments or fragments. */
struct left_out {
	uint8_t version, protocol;
	uint32_t told;
	uint32_t size;  /* what one has behind its headers */
	uint32_t bytes; /* wanted */
};

/* The kernel leaves out SCTP's header of a segment, and that of a fragment over IPv6. */
TH_TEST(headers_that_the_kernel_leaves_out_count)
{
	static const struct left_out rows[] = {
		{4, 132, 14 + 20 + 12 + 1000 + 34, 500, 2 * (46 + 500)},
		{6, 132, 14 + 40 + 12 + 1000 + 54, 500, 2 * (66 + 500)},
		{6, 17, 14 + 40 + 8 + 1000 + 54, 504, 2 * 62 + 8 + 1000},
		{4, 17, 14 + 20 + 8 + 1000 + 34, 504, 2 * 34 + 8 + 1000},
		/* The kernel has counted UDP's header: these are segments. */
		{6, 17, 14 + 40 + 8 + 1000 + 62, 500, 2 * (62 + 500)},
	};
	const struct natra_limits limits = {0};

	for (size_t i = 0; i < 2 * TH_LEN(rows); i++) {
		const struct left_out *row = &rows[i / 2];
		struct progrun run = th_load_kind(programs[1 + i % 2], &limits);
		const struct th_context context = {.wire_len = row->told,
						   .gso_segs = 2,
						   .gso_size = row->size};
		struct th_result result;
		struct packet p;

		if (row->version == 4)
			packet_begin_ipv4(&p, &plain);
		else
			packet_begin_ipv6(&p, &plain);
		packet_ports(&p, row->protocol, 1000, 2000,
			     row->protocol == 132 ? 12 : 8);
		packet_payload(&p, 1000);
		packet_end(&p);
		th_send(&run, &p, &context, &result);
		assert_int_equal(result.bytes, row->bytes);
		th_close(&run);
	}
}

TH_TEST(vlan_tag_beside_the_packet_counts)
{
	const struct natra_limits limits = {0};
	struct th_result result;
	struct packet p;

	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);
		struct th_context context = {.vlan_tci = 10};

		th_use_prelude(&run);
		packet_make_tcp4(&p, 1000, 0, 54 + 1500);
		th_send(&run, &p, &context, &result);
		assert_int_equal(result.bytes, 54 + 1500 + 4);
		context.gso_segs = 3;
		context.gso_size = 500;
		context.wire_len = 3 * (54 + 500);
		th_send(&run, &p, &context, &result);
		assert_int_equal(result.bytes, 3 * (54 + 500 + 4));
		th_close(&run);
	}
}

/* The legs of an attachment share a program, and each stub tells it what to do. */
TH_TEST(one_program_serves_all_kinds)
{
	static const enum natra_counter counters[] = {
		[STUB_RX] = NATRA_COUNT_DROPPED_RATE,
		[STUB_TX] = NATRA_COUNT_DROPPED_RATE,
		[STUB_EDT] = NATRA_COUNT_PACED,
	};
	const struct program_options options = {
		.kind = STUB_RX,
		.has_l2 = true,
		.holds = true,
	};
	/* What the kernel tells is more than the headers come to. */
	const struct th_context context = {
		.gso_segs = 2,
		.gso_size = 700,
		.wire_len = 4000,
	};
	const struct natra_limits limits = th_limits();
	struct th_result result;
	struct progrun run;
	struct packet p;

	th_load(&run, &options, &limits);
	packet_make_tcp4(&p, 1000, 0, 54 + 1400);
	for (size_t i = 0; i < TH_LEN(programs); i++) {
		const bool held = programs[i] == STUB_EDT;

		stub_close(&run.stub);
		assert_int_equal(stub_load(run.n, programs[i], false,
					   run.bank.programs_fd, run.slot.index,
					   &run.stub),
				 0);
		th_set_tat(&run, th_now() + TH_SECOND);
		th_send(&run, &p, &context, &result);
		assert_int_equal(result.counter, counters[programs[i]]);
		assert_int_equal(result.verdict,
				 held ? TC_ACT_UNSPEC : TC_ACT_SHOT);
		assert_int_equal(result.bytes, programs[i] == STUB_RX
						       ? 2 * (54 + 700)
						       : 4000);
		assert_int_equal(result.tstamp != 0, held);
	}
	th_close(&run);
}

/* Reads all that the program knows but what it counts. */
static struct natra_state *read_uncounted(struct progrun *run, size_t *ret_len)
{
	struct natra_state *s = th_read_state(run, ret_len);

	memset(s->stripes, 0, sizeof(s->stripes));
	return s;
}

/* Drops the packet, whose segments have a byte each, as if it had never come. */
static void check_crafted(const struct packet *p, enum stub_kind kind,
			  uint32_t segs)
{
	const struct th_context context = {.gso_segs = segs, .gso_size = 1};
	const struct natra_limits limits = th_limits();
	struct progrun run = th_load_kind(kind, &limits);
	cleanup_free struct natra_state *before = NULL, *after = NULL;
	struct th_result result;
	size_t len;

	before = read_uncounted(&run, &len);
	th_send(&run, p, &context, &result);
	assert_int_equal(result.verdict, TC_ACT_SHOT);
	assert_int_equal(result.counter, NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(result.bytes, p->len);
	after = read_uncounted(&run, &len);
	assert_memory_equal(before, after, len);
	th_close(&run);
}

/* A packet socket tells the kernel that segments have a byte each. */
TH_TEST(crafted_packets_are_dropped_and_charged_to_nobody)
{
	struct packet plain_tcp, short_tcp, extended, datagrams;

	packet_make_tcp4(&plain_tcp, 1000, 0, 2000);
	packet_make_tcp4(&short_tcp, 1000, 0, 54 + 5);
	packet_begin_ipv4(&datagrams, &plain);
	packet_udp(&datagrams, 1000, 2000);
	packet_payload(&datagrams, 1000);
	packet_end(&datagrams);
	packet_begin_ipv6(&extended, &plain);
	packet_extension(&extended, 60, 8);
	packet_tcp(&extended, 1000, 80, 20);
	packet_payload(&extended, 1900);
	packet_end(&extended);
	for (size_t i = 0; i < TH_LEN(programs); i++) {
		check_crafted(&plain_tcp, programs[i], 2000 - 54);
		check_crafted(&plain_tcp, programs[i], 0);
		check_crafted(&short_tcp, programs[i], 5);
		check_crafted(&datagrams, programs[i], 1000);
		check_crafted(&extended, programs[i], 1900);
	}
}

/* Makes what a socket of UDP may have cut into 128 datagrams. */
static struct packet make_datagrams(void)
{
	struct packet p;

	packet_begin_ipv4(&p, &plain);
	packet_udp(&p, 1000, 2000);
	packet_payload(&p, 128);
	packet_end(&p);
	return p;
}

/* TCP cuts what it sends into segments of at least 36 bytes beside its timestamps. */
TH_TEST(small_segments_of_sockets_are_charged)
{
	const uint32_t udp = 128 * (14 + 20 + 8 + 1);
	const uint32_t tcp = 50 * (14 + 20 + 32 + 36);
	struct packet p = make_datagrams();

	check_all(&p,
		  &(struct th_context){
			  .wire_len = udp, .gso_segs = 128, .gso_size = 1},
		  udp, udp);
	packet_begin_ipv4(&p, &plain);
	packet_tcp(&p, 1000, 80, 32);
	packet_payload(&p, 50 * 36);
	packet_end(&p);
	check_all(&p,
		  &(struct th_context){
			  .wire_len = tcp, .gso_segs = 50, .gso_size = 36},
		  tcp, tcp);
}

/* A few thousand such packets would otherwise fill the sketch, and make others' flows heavy. */
TH_TEST(small_segments_weigh_up_to_four_times)
{
	const struct th_context context = {.gso_segs = 128, .gso_size = 1};
	const struct natra_limits limits = th_limits();
	const struct packet p = make_datagrams();
	struct progrun run = th_load_kind(STUB_RX, &limits);
	cleanup_free struct natra_state *s = NULL;
	struct th_result result;
	uint32_t most = 0;
	size_t len;

	th_send(&run, &p, &context, &result);
	assert_int_equal(result.bytes, 128 * (42 + 1));
	s = th_read_state(&run, &len);
	for (uint32_t *cell = s->sketch; (char *)cell < (char *)s + len; cell++)
		if ((*cell & NATRA_CELL_COUNT_MAX) > most)
			most = *cell & NATRA_CELL_COUNT_MAX;
	assert_int_equal(most, natra_units(4 * (42 + 128)));
	th_close(&run);
}

TH_TEST(unlimited_packets_count_up_to_four_times)
{
	const struct natra_limits limits = {0};
	struct th_result result;
	struct packet p;

	packet_make_tcp4(&p, 1000, 0, 54 + 1000);
	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);
		struct th_context context = {.gso_segs = 1000, .gso_size = 1};

		th_send(&run, &p, &context, &result);
		assert_int_equal(result.counter, NATRA_COUNT_UNLIMITED);
		assert_int_equal(result.verdict, TC_ACT_UNSPEC);
		assert_int_equal(result.bytes, 4 * p.len);
		context.gso_segs = 1;
		context.gso_size = 0;
		th_send(&run, &p, &context, &result);
		assert_int_equal(result.bytes, p.len);
		th_close(&run);
	}
}

TH_BPF_MAIN(NULL, NULL)
