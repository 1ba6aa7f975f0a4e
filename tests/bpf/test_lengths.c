/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check the length that natra counts for a packet: its length on the
 * wire, with GSO, tunnels and tags. */
#include "cm.h"

#include <string.h>

#include "natra_sketch.h"
#include "progrun.h"
#include "util/cleanup.h"

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
	p = packet_of(
		"eth ip6 ext:0:8 ext:43:24 ext:51:24 ext:60:16 tcp pay:1000");
	context.gso_segs = 2;
	th_send(&run, &p, &context, &result);
	assert_int_equal(result.bytes, 2 * (14 + 40 + 72 + 20 + 500));
	th_close(&run);
}

#define INNER_TCP (20 + 32)

/* Checks three segments of 500 bytes in a tunnel, with `overhead` bytes of
 * headers in front of the inner IP header. */
static void check_tunnel(const char *layers, uint32_t overhead)
{
	struct th_context context = {.gso_segs = 3, .gso_size = 500};
	const struct natra_limits limits = {0};
	const struct packet p = packet_of("%s ip4 tcp:32 pay:1500", layers);
	struct th_result result;

	assert_int_equal(p.len, overhead + INNER_TCP + 1500);
	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);

		/* Before Linux 6.18 it leaves out what is inside. */
		context.wire_len = (uint32_t)p.len + 2 * 34;
		th_send(&run, &p, &context, &result);
		assert_int_equal(result.bytes,
				 3 * (overhead + INNER_TCP + 500));
		th_close(&run);
	}
}

TH_TEST(segments_in_a_tunnel_have_its_headers_too)
{
	/* VXLAN with two ports, and Geneve. */
	check_tunnel("eth ip4 udp:4789 hex:0000655800000000 eth",
		     14 + 20 + 8 + 8 + 14);
	check_tunnel("eth ip4 udp:8472 hex:0000655800000000 eth",
		     14 + 20 + 8 + 8 + 14);
	check_tunnel("eth ip4 udp:6081 hex:0000655800000000 eth",
		     14 + 20 + 8 + 8 + 14);
	check_tunnel("eth ip6 next:4", 14 + 40);
	/* GRE with a key, MPLS with two labels, and PPPoE. */
	check_tunnel("eth ip4 ports:47:8:0x0800:0x2000", 14 + 20 + 8);
	check_tunnel("eth type:0x8847 hex:0001004000010140", 14 + 8);
	check_tunnel("eth type:0x8864 hex:1100000700000021", 14 + 8);
}

TH_TEST(tcp_options_are_in_every_segment)
{
	const struct natra_limits limits = {0};
	const struct th_context context = {.gso_segs = 3, .gso_size = 500};
	struct progrun run = th_load_kind(STUB_RX, &limits);
	struct th_result result;
	struct packet p;

	for (size_t len = 20; len <= 60; len += 4) {
		p = packet_of("eth ip4 tcp:%zu pay:1500", len);
		th_send(&run, &p, &context, &result);
		assert_int_equal(result.bytes, 3 * (14 + 20 + len + 500));
		p = packet_of("eth ip6 tcp:%zu pay:1500", len);
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
	struct packet p = packet_of("eth ip6 ext:0:8 tcp pay:1500");

	p.data[14 + 40 + 2] = 0xc2;
	p.data[14 + 40 + 3] = 4;
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
	const struct packet p = packet_of("eth ip6 ext:60:520 tcp pay:1200");

	check_all(&p, &context, 10 * (headers + 120), 10 * (headers + 120));
}

/* GSO looks for TCP behind the IP header, whatever that says of fragments. The last segment
 * is short: from their number alone the header would be shorter. */
TH_TEST(claim_to_be_a_fragment_hides_no_header)
{
	static const uint16_t claims[] = {PACKET_MORE_FRAGMENTS, 16};
	const uint32_t wire = 10 * (14 + 20 + 60) + 361;
	const struct th_context context = {.gso_segs = 10, .gso_size = 40};

	for (size_t i = 0; i < TH_LEN(claims); i++) {
		const struct packet p =
			packet_of("eth ip4:f%u tcp:60 pay:361", claims[i]);

		check_all(&p, &context, wire, wire);
	}
}

/* Headers that the parser does not find are charged as if they were as long as they can
 * be. If nobody has counted the segments, that is half of the packet. */
TH_TEST(what_the_parser_does_not_find_is_charged_at_least)
{
	/* There is no EtherType of NSH in the parser, but in the kernel's GSO. */
	static const char *const kinds[] = {
		"eth ip6 ext:60:8 ext:60:8 ext:60:8 ext:60:8 ext:60:600 tcp",
		"eth vlan vlan vlan vlan vlan vlan vlan ip4 tcp:60",
		"eth type:0x894f hex:0fc2010100000000 ip4 tcp:60",
	};

	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		struct th_context context = {.gso_segs = 10, .gso_size = 10};
		const struct packet p = packet_of("%s pay:100", kinds[i]);
		const uint32_t wire = 10 * ((uint32_t)p.len - 90);

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
		const struct packet p =
			packet_of("eth ip%u ports:%u:%d pay:1000", row->version,
				  row->protocol, row->protocol == 132 ? 12 : 8);
		struct th_result result;

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
	struct program_options options = {
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
		options.kind = programs[i];
		assert_int_equal(stub_load(run.n, &options, held,
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
static struct natra_state read_uncounted(struct progrun *run)
{
	struct natra_state s = th_read_state(run);

	memset(s.stripes, 0, sizeof(s.stripes));
	return s;
}

/* Drops the packet, whose segments have a byte each, as if it had never come. */
static void check_crafted(const struct packet *p, enum stub_kind kind,
			  uint32_t segs)
{
	const struct th_context context = {.gso_segs = segs, .gso_size = 1};
	const struct natra_limits limits = th_limits();
	struct progrun run = th_load_kind(kind, &limits);
	struct natra_state before, after;
	struct th_result result;

	before = read_uncounted(&run);
	th_send(&run, p, &context, &result);
	assert_int_equal(result.verdict, TC_ACT_SHOT);
	assert_int_equal(result.counter, NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(result.bytes, p->len);
	after = read_uncounted(&run);
	assert_memory_equal(&before, &after, sizeof(before));
	th_close(&run);
}

/* A packet socket tells the kernel that segments have a byte each. */
TH_TEST(crafted_packets_are_dropped_and_charged_to_nobody)
{
	const struct packet plain_tcp = packet_of("eth ip4 tcp pad:2000");
	const struct packet short_tcp = packet_of("eth ip4 tcp pay:5");
	const struct packet datagrams = packet_of("eth ip4 udp pay:1000");
	const struct packet extended =
		packet_of("eth ip6 ext:60:8 tcp pay:1900");

	for (size_t i = 0; i < TH_LEN(programs); i++) {
		check_crafted(&plain_tcp, programs[i], 2000 - 54);
		check_crafted(&plain_tcp, programs[i], 0);
		check_crafted(&short_tcp, programs[i], 5);
		check_crafted(&datagrams, programs[i], 1000);
		check_crafted(&extended, programs[i], 1900);
	}
}

/* A socket of UDP may have them cut into 128. */
#define DATAGRAMS "eth ip4 udp pay:128"

/* TCP cuts what it sends into segments of at least 36 bytes beside its timestamps. */
TH_TEST(small_segments_of_sockets_are_charged)
{
	const uint32_t udp = 128 * (14 + 20 + 8 + 1);
	const uint32_t tcp = 50 * (14 + 20 + 32 + 36);
	struct packet p = packet_of(DATAGRAMS);

	check_all(&p,
		  &(struct th_context){
			  .wire_len = udp, .gso_segs = 128, .gso_size = 1},
		  udp, udp);
	p = packet_of("eth ip4 tcp:32 pay:%d", 50 * 36);
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
	const struct packet p = packet_of(DATAGRAMS);
	struct progrun run = th_load_kind(STUB_RX, &limits);
	struct natra_state s;
	struct th_result result;
	uint32_t most = 0;

	th_send(&run, &p, &context, &result);
	assert_int_equal(result.bytes, 128 * (42 + 1));
	s = th_read_state(&run);
	for (size_t i = 0; i < TH_LEN(s.sketch); i++)
		if ((s.sketch[i] & NATRA_CELL_COUNT_MAX) > most)
			most = s.sketch[i] & NATRA_CELL_COUNT_MAX;
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

/* Nobody has paid for them, either. */
TH_TEST(dropped_packets_count_up_to_four_times)
{
	const struct th_context context = {.gso_segs = 128, .gso_size = 1};
	const struct natra_limits limits = th_limits();
	const struct packet p = packet_of(DATAGRAMS);

	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);
		struct th_result result;

		for (int sent = 0; sent < 100000; sent++) {
			th_send(&run, &p, &context, &result);
			if (result.verdict == TC_ACT_SHOT)
				break;
		}
		assert_int_equal(result.verdict, TC_ACT_SHOT);
		assert_int_equal(result.bytes, 4 * p.len);
		th_close(&run);
	}
}

TH_BPF_MAIN(NULL, NULL)
