/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check limits of packets and of new connections (natra_gates.bpf.h), which
 * hold for mice, too. */
#include "cm.h"

#include <stdlib.h>

#include "progrun.h"
#include "util/cleanup.h"

#define LEN    120
#define FAR    (3600 * TH_SECOND)
#define FLAGS4 (14 + 20 + 13)
#define SYN    0x02
#define ACK    0x10

static struct progrun run;
static struct natra_limits limits;

/* A packet takes 50 ms and a connection 1 s. */
static void load_units(enum stub_kind kind, bool packets, bool connections,
		       uint32_t enter_units)
{
	limits = th_limits();
	limits.pass = NATRA_PASS_FREE;
	limits.enter_units = enter_units;
	limits.leave_units = enter_units / 8;
	limits.has_gates = packets || connections;
	if (packets)
		limits.packets = policy_rate(8ULL * 20, 1);
	if (connections)
		limits.connections = policy_rate(8, 1);
	run = th_load_kind(kind, &limits);
}

/* Everything is a mouse. */
static void load(enum stub_kind kind, bool packets, bool connections)
{
	load_units(kind, packets, connections, 10000);
}

TH_STEP(load_rx, load(STUB_RX, true, true))
TH_STEP(load_tx, load(STUB_TX, true, true))
TH_STEP(load_edt, load(STUB_EDT, true, true))
TH_STEP(load_connections, load(STUB_RX, false, true))
TH_STEP(load_none, load(STUB_RX, false, false))
TH_STEP(load_heavy, load_units(STUB_RX, false, true, 40))
TH_STEP(unload, th_close(&run))

static struct natra_state gates(void)
{
	return th_read_state(&run);
}

static struct th_result send(const struct packet *p, uint32_t segs)
{
	const struct th_context context = {.gso_segs = segs,
					   .gso_size = segs ? 10 : 0};
	struct th_result r;

	th_send(&run, p, segs ? &context : NULL, &r);
	return r;
}

static struct th_result send_tcp(uint16_t port, uint8_t flags)
{
	struct packet p;

	packet_make_tcp4(&p, port, 0, LEN);
	p.data[FLAGS4] = flags;
	return send(&p, 0);
}

/* Over a gate a packet is dropped, and counts as over one of the two. */
static void is_over(const struct th_result *r, uint64_t packets,
		    uint64_t connections)
{
	struct natra_counters sum;

	assert_int_equal(r->verdict, TC_ACT_SHOT);
	assert_int_equal(r->counter, NATRA_COUNT_DROPPED_RATE);
	th_counters(&run, &sum);
	assert_int_equal(sum.over_packets.packets, packets);
	assert_int_equal(sum.over_packets.bytes, packets * LEN);
	assert_int_equal(sum.over_connections.packets, connections);
	assert_int_equal(sum.over_connections.bytes, connections * LEN);
}

TH_TEST_AFTER(mice_over_the_packets_are_dropped, load_rx, load_tx, load_edt)
{
	struct th_result r;

	th_set_gates(&run, 0, 0);
	r = send_tcp(1, ACK);
	assert_int_equal(r.counter, NATRA_COUNT_MICE);
	/* The burst is one packet of 50 ms, and another one may owe. */
	th_set_gates(&run, th_now() + TH_SECOND, 0);
	r = send_tcp(2, ACK);
	is_over(&r, 1, 0);
	r = send_tcp(3, ACK);
	is_over(&r, 2, 0);
}

/* Packets that a gate drops make no flow heavy, neither their own nor one that shares its cells. */
TH_TEST_AFTER(a_flood_over_a_gate_is_not_counted, load_heavy)
{
	struct th_result r;

	th_set_gates(&run, 0, th_now() + FAR);
	for (int i = 1; i <= 100; i++) {
		r = send_tcp(1, SYN);
		is_over(&r, 0, i);
	}
	r = send_tcp(1, ACK);
	assert_int_equal(r.counter, NATRA_COUNT_MICE);
	for (int i = 0; i < 100; i++)
		r = send_tcp(1, ACK);
	assert_int_not_equal(r.counter, NATRA_COUNT_MICE);
}

TH_TEST_AFTER(packet_counts_as_its_segments, load_rx, load_tx, load_edt)
{
	uint64_t from = th_coarse_now();
	struct th_result r;
	struct packet p;

	th_set_gates(&run, 0, 0);
	packet_make_tcp4(&p, 1, 0, LEN);
	p.data[FLAGS4] = ACK;
	(void)send(&p, 7);
	assert_in_range(gates().packets_tat_ns, from + 6 * 50 * TH_MS - TH_MS,
			th_now() + 6 * 50 * TH_MS);
	/* A packet socket does not say how many they are. */
	th_set_gates(&run, 0, 0);
	th_send(&run, &p, &(struct th_context){.gso_size = LEN / 6}, &r);
	assert_in_range(gates().packets_tat_ns, from + 5 * 50 * TH_MS - TH_MS,
			th_now() + 6 * 50 * TH_MS);
}

TH_TEST_AFTER(connections_over_theirs_are_refused, load_rx, load_tx, load_edt)
{
	uint64_t from;
	struct th_result r;
	struct packet p;

	th_set_gates(&run, 0, 0);
	assert_int_equal(send_tcp(1, SYN).counter, NATRA_COUNT_MICE);
	assert_int_not_equal(gates().connections_tat_ns, 0);
	th_set_gates(&run, 0, th_now() + TH_SECOND);
	r = send_tcp(2, SYN);
	is_over(&r, 0, 1);
	/* What is no beginning of a connection passes. */
	th_set_gates(&run, 0, th_now() + TH_SECOND);
	assert_int_equal(send_tcp(1, ACK).counter, NATRA_COUNT_MICE);
	th_set_gates(&run, 0, th_now() + TH_SECOND);
	assert_int_equal(send_tcp(3, SYN | ACK).counter, NATRA_COUNT_MICE);
	/* A packet socket can have one cut into segments. */
	packet_make_tcp4(&p, 4, 0, LEN);
	p.data[FLAGS4] = SYN;
	th_set_gates(&run, 0, th_now() + TH_SECOND);
	assert_int_equal(send(&p, 2).verdict, TC_ACT_SHOT);
	/* Each segment has the SYN. */
	th_set_gates(&run, 0, 0);
	from = th_coarse_now();
	assert_int_equal(send(&p, 7).verdict, TC_ACT_UNSPEC);
	assert_in_range(gates().connections_tat_ns,
			from + 6 * TH_SECOND - TH_MS, th_now() + 8 * TH_SECOND);
}

/* Returns a packet of these words that ends with TCP, which has these flags. */
static struct packet tcp_of(const char *layers, uint8_t flags)
{
	struct packet p = packet_of("%s tcp pad:%d", layers, LEN);

	p.data[p.l4 + 13] = flags;
	return p;
}

#define IPIP  "eth ip4 next:4 ip4"
#define VXLAN "eth ip4 udp:4789 hex:a5a5a5a5a5a5a5a5 eth"

/* What a packet of very many segments would owe would stop all others for long. Headers that are
 * in no plain TCP let so many of them be no crafted ones. */
TH_TEST_AFTER(one_packet_does_not_close_a_gate, load_rx, load_tx, load_edt)
{
	uint64_t from = th_coarse_now();
	struct packet p = tcp_of(IPIP, SYN);

	th_set_gates(&run, 0, 0);
	assert_int_equal(send(&p, 129).verdict, TC_ACT_SHOT);
	assert_int_equal(gates().packets_tat_ns, 0);
	assert_int_equal(gates().connections_tat_ns, 0);
	assert_int_equal(send(&p, 128).verdict, TC_ACT_UNSPEC);
	assert_in_range(gates().packets_tat_ns, from + 127 * 50 * TH_MS - TH_MS,
			th_now() + 128 * 50 * TH_MS);
	/* Here 129 packets take less than a second. */
	limits.packets = policy_rate(8ULL * 300, 1);
	th_set_limits(&run, &limits);
	p.data[p.l4 + 13] = ACK;
	th_set_gates(&run, 0, 0);
	assert_int_equal(send(&p, 129).verdict, TC_ACT_UNSPEC);
	th_set_gates(&run, 0, 0);
	assert_int_equal(send(&p, 301).verdict, TC_ACT_SHOT);
}

/* Neither headers in front of it, nor fragments, nor a tunnel that the node may end hide a
 * SYN. */
TH_TEST_AFTER(hidden_connections_are_refused, load_rx, load_tx, load_edt)
{
	static const struct {
		const char *layers;
		uint8_t flags; /* of TCP behind them; 0: there is none */
	} rows[] = {
		{"eth ip4:o2", SYN},
		{"eth vlan ip6", SYN},
		/* The first fragment may end in front of the flags. */
		{"eth ip4:f0x2000", ACK},
		{"eth ip6 frag:1:7", ACK},
		/* Hosts look behind more headers than the parser, and take off any
		 * number of tags with the id 0. */
		{"eth ip6 ext:60:8 ext:60:8 ext:60:8 ext:60:8 ext:60:8", ACK},
		{"eth vlan:0 vlan:0 vlan:0 ip4", SYN},
		/* IPsec's authentication header has what follows in clear text. */
		{"eth ip4 ext:51:24", SYN},
		{"eth ip4 ext:51:24 ext:51:24", SYN},
		{"eth ip4:f0x2000 ext:51:24", SYN},
		{IPIP " ext:51:24", SYN},
		{IPIP, SYN},
		{IPIP " next:4 ip4", ACK},
		{"eth ip6 ports:47:4:0x0800:0 ip4", SYN},
		{VXLAN " ip4", SYN},
		/* More fragments follow, of the outer packet and of the inner one. */
		{"eth ip4:f0x2000 udp:4789 hex:a5a5a5a5a5a5a5a5 eth ip4", SYN},
		{"eth ip4 next:4 ip4:f0x2000 udp:4789", 0},
	};
	struct packet p;

	for (size_t i = 0; i < TH_LEN(rows); i++) {
		struct th_result r;

		p = rows[i].flags ? tcp_of(rows[i].layers, rows[i].flags)
				  : packet_of("%s pad:%d", rows[i].layers, LEN);
		th_set_gates(&run, 0, th_now() + TH_SECOND);
		r = send(&p, 0);
		is_over(&r, 0, i + 1);
	}
	/* What follows the first fragment belongs to the same connection. */
	p = tcp_of("eth ip4:f2", ACK);
	assert_int_equal(send(&p, 0).counter, NATRA_COUNT_MICE);
}

/* In a tunnel and behind IPsec's header, too, only the first packet of a connection counts. */
TH_TEST_AFTER(other_packets_in_a_tunnel_pass, load_rx, load_tx, load_edt)
{
	const struct packet others[] = {
		tcp_of(IPIP, ACK),
		tcp_of(VXLAN " ip4", SYN | ACK),
		tcp_of("eth ip4 ext:51:24", ACK),
		packet_of("eth ip4 udp:4789 hex:a5a5a5a5a5a5a5a5 eth"
			  " type:0x0806 pad:%d",
			  LEN),
		/* The rest of a datagram. */
		tcp_of("eth ip4 next:4 ip4:f2", SYN),
	};

	for (size_t i = 0; i < TH_LEN(others); i++) {
		th_set_gates(&run, 0, th_now() + FAR);
		assert_int_equal(send(&others[i], 0).counter, NATRA_COUNT_MICE);
	}
}

/* Neither frames that are not IP begin a connection, nor IPv4 of a protocol that is an extension
 * header in IPv6 alone, which hosts do not look behind. */
TH_TEST(what_is_not_tcp_passes)
{
	static const uint8_t protocols[] = {0, 43, 44, 60};
	struct packet p = packet_of("eth type:0x88f7 pad:%d", LEN);

	th_set_gates(&run, 0, th_now() + FAR);
	assert_int_equal(send(&p, 0).counter, NATRA_COUNT_MICE);
	for (size_t i = 0; i < 2 * TH_LEN(protocols); i++) {
		p = packet_of("%s next:%u pad:%d", i % 2 ? IPIP : "eth ip4",
			      protocols[i / 2], LEN);
		th_set_gates(&run, 0, th_now() + FAR);
		assert_int_equal(send(&p, 0).counter, NATRA_COUNT_MICE);
	}
}

/* A neighbour asks for the pod's address, which a flood of packets must not prevent; but a
 * flood of such questions is one of packets, too. */
TH_TEST_AFTER(discovery_is_held_up_only_if_it_is_a_flood, load_rx, load_tx,
	      load_edt)
{
	struct natra_counters sum;
	struct packet p = packet_of("eth ip6:h255 echo:58:135");
	uint64_t begin = th_now(), earned;

	th_set_gates(&run, th_now() + FAR, 0);
	assert_int_equal(send(&p, 0).counter, NATRA_COUNT_OTHER);
	for (int i = 0; i < 200; i++) {
		p.data[14 + 8 + 15] = (uint8_t)i; /* another source */
		p.data[11] = (uint8_t)i;
		(void)send(&p, 0);
	}
	th_counters(&run, &sum);
	earned = (th_now() - begin) / (TH_SECOND / 64);
	assert_in_range(sum.over_packets.packets + earned, 134, 140 + earned);
}

/* A limit 100 times as high pays what a bucket owes in a hundredth of the time. */
TH_TEST(raised_limits_hold_at_once)
{
	const uint64_t hundredth_ns = FAR / 100;

	th_set_gates(&run, 0, 0);
	(void)send_tcp(1, ACK);
	th_set_gates(&run, th_now() + FAR, 0);
	limits.packets = policy_rate(8ULL * 2000, 1);
	th_set_limits(&run, &limits);
	(void)send_tcp(1, ACK);
	assert_in_range(gates().packets_tat_ns,
			th_now() + hundredth_ns - TH_SECOND,
			th_now() + hundredth_ns + TH_SECOND);
}

/* A GSO packet may have more segments than the limit has in a minute. */
TH_TEST(what_is_owed_is_paid)
{
	const uint64_t far_ns = th_now() + FAR;

	th_set_gates(&run, far_ns, far_ns);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send_tcp(1, SYN).verdict, TC_ACT_SHOT);
		limits.connections.mult++;
		th_set_limits(&run, &limits);
	}
	assert_int_equal(gates().packets_tat_ns, far_ns);
	assert_int_equal(gates().connections_tat_ns, far_ns);
}

TH_TEST_AFTER(nothing_is_read_without_gates, load_none)
{
	th_set_gates(&run, th_now() + FAR, th_now() + FAR);
	assert_int_equal(send_tcp(1, SYN).counter, NATRA_COUNT_MICE);
}

TH_TEST_AFTER(connections_alone_do_not_limit_packets, load_connections)
{
	struct th_result r;

	th_set_gates(&run, th_now() + FAR, th_now() + TH_SECOND);
	assert_int_equal(send_tcp(1, ACK).counter, NATRA_COUNT_MICE);
	r = send_tcp(2, SYN);
	is_over(&r, 0, 1);
}

TH_BPF_MAIN(load_rx, unload)
