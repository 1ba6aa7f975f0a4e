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

/* Everything is a mouse. A packet takes 50 ms and a connection 1 s. */
static int load(enum stub_kind kind, bool packets, bool connections)
{
	limits = th_limits();
	limits.pass = NATRA_PASS_FREE;
	limits.enter_units = 10000;
	limits.leave_units = 1250;
	limits.has_gates = packets || connections;
	if (packets)
		limits.packets = policy_rate(8ULL * 20, 1);
	if (connections)
		limits.connections = policy_rate(8, 1);
	run = th_load_kind(kind, &limits);
	return 0;
}

static int load_rx(void **state)
{
	(void)state;
	return load(STUB_RX, true, true);
}

static int load_tx(void **state)
{
	(void)state;
	return load(STUB_TX, true, true);
}

static int load_edt(void **state)
{
	(void)state;
	return load(STUB_EDT, true, true);
}

static int load_connections(void **state)
{
	(void)state;
	return load(STUB_RX, false, true);
}

static int load_none(void **state)
{
	(void)state;
	return load(STUB_RX, false, false);
}

static int unload(void **state)
{
	(void)state;
	th_close(&run);
	return 0;
}

static struct natra_state gates(void)
{
	size_t len;
	cleanup_free struct natra_state *s = th_read_state(&run, &len);

	return *s;
}

static struct th_result send(struct packet *p, uint32_t segs)
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

static void make_options(struct packet *p)
{
	packet_begin_ipv4(p, &(struct packet_ip){.options = 2});
	packet_tcp(p, 9, 80, 20);
	p->data[14 + 28 + 13] = SYN;
	packet_pad(p, LEN);
	packet_end(p);
}

static void make_tagged6(struct packet *p)
{
	packet_begin(p);
	packet_ethernet(p);
	packet_vlan(p, 0x8100, 10);
	packet_ipv6(p, &(struct packet_ip){0});
	packet_tcp(p, 9, 80, 20);
	p->data[18 + 40 + 13] = SYN;
	packet_pad(p, LEN);
	packet_end(p);
}

/* The first fragment ends in front of the flags; what pads the frame is none. */
static void make_fragment(struct packet *p)
{
	packet_begin_ipv4(
		p, &(struct packet_ip){.fragment = PACKET_MORE_FRAGMENTS});
	packet_tcp(p, 9, 80, 20);
	p->data[FLAGS4] = ACK;
	packet_pad(p, LEN);
	packet_end(p);
}

static void make_fragment6(struct packet *p)
{
	packet_begin_ipv6(p, &(struct packet_ip){0});
	packet_ipv6_fragment(p, 1, 7);
	packet_tcp(p, 9, 80, 20);
	packet_pad(p, LEN);
	packet_end(p);
}

/* The parser looks behind four extension headers, and hosts behind more. */
static void make_extensions6(struct packet *p)
{
	packet_begin_ipv6(p, &(struct packet_ip){0});
	for (int i = 0; i < 5; i++)
		packet_extension(p, 60, 8);
	packet_pad(p, LEN);
	packet_end(p);
}

/* Hosts take off any number of tags with the id 0. */
static void make_tags3(struct packet *p)
{
	packet_begin(p);
	packet_ethernet(p);
	for (int i = 0; i < 3; i++)
		packet_vlan(p, 0x8100, 0);
	packet_ipv4(p, &(struct packet_ip){0});
	packet_tcp(p, 9, 80, 20);
	p->data[p->l4 + 13] = SYN;
	packet_pad(p, LEN);
	packet_end(p);
}

/* IPsec's authentication header has what follows in clear text. */
static void add_authentication(struct packet *p, int times)
{
	for (int i = 0; i < times; i++)
		packet_extension(p, 51, 24);
	packet_tcp(p, 9, 80, 20);
	p->data[p->l4 + 13] = SYN;
	packet_pad(p, LEN);
	packet_end(p);
}

static void make_authentication(struct packet *p)
{
	packet_begin_ipv4(p, &(struct packet_ip){0});
	add_authentication(p, 1);
}

static void make_authentication_twice(struct packet *p)
{
	packet_begin_ipv4(p, &(struct packet_ip){0});
	add_authentication(p, 2);
}

static void make_authentication_fragment(struct packet *p)
{
	packet_begin_ipv4(
		p, &(struct packet_ip){.fragment = PACKET_MORE_FRAGMENTS});
	add_authentication(p, 1);
}

/* Ends a packet in a tunnel, whose inner IP header comes next. */
static void end_inside(struct packet *p, uint8_t flags)
{
	packet_ipv4(p, &(struct packet_ip){0});
	packet_tcp(p, 9, 80, 20);
	p->data[p->l4 + 13] = flags;
	packet_pad(p, LEN);
}

static void begin_ipip(struct packet *p)
{
	packet_begin_ipv4(p, &(struct packet_ip){0});
	p->data[p->next_at] = 4;
	p->type_at = PACKET_NO_LAYER;
}

static void make_ipip(struct packet *p)
{
	begin_ipip(p);
	end_inside(p, SYN);
}

static void make_ipip_twice(struct packet *p)
{
	begin_ipip(p);
	packet_ipv4(p, &(struct packet_ip){0});
	p->data[p->next_at] = 4;
	end_inside(p, ACK);
}

static void make_authentication_in_ipip(struct packet *p)
{
	begin_ipip(p);
	packet_ipv4(p, &(struct packet_ip){0});
	add_authentication(p, 1);
}

static void make_gre(struct packet *p)
{
	packet_begin_ipv6(p, &(struct packet_ip){0});
	packet_ports(p, 47, 0, 0x0800, 4);
	p->type_at = PACKET_NO_LAYER;
	end_inside(p, SYN);
}

static void begin_vxlan(struct packet *p)
{
	packet_begin_ipv4(p, &(struct packet_ip){0});
	packet_udp(p, 9, 4789);
	packet_payload(p, 8);
	packet_ethernet(p);
}

static void make_vxlan(struct packet *p)
{
	begin_vxlan(p);
	end_inside(p, SYN);
}

/* More fragments follow, of the outer packet and of the inner one. */
static void make_vxlan_fragment(struct packet *p)
{
	make_vxlan(p);
	p->data[14 + 6] = 0x20;
}

static void make_vxlan_in_a_fragment(struct packet *p)
{
	begin_ipip(p);
	packet_ipv4(p, &(struct packet_ip){0});
	p->data[p->l3 + 6] = 0x20;
	packet_udp(p, 9, 4789);
	packet_pad(p, LEN);
}

/* What a packet of very many segments would owe would stop all others for long. Headers that are
 * in no plain TCP let so many of them be no crafted ones. */
TH_TEST_AFTER(one_packet_does_not_close_a_gate, load_rx, load_tx, load_edt)
{
	uint64_t from = th_coarse_now();
	struct packet p;

	make_ipip(&p);
	th_set_gates(&run, 0, 0);
	assert_int_equal(send(&p, 129).verdict, TC_ACT_SHOT);
	assert_int_equal(gates().packets_tat_ns, 0);
	assert_int_equal(gates().connections_tat_ns, 0);
	assert_int_equal(send(&p, 128).verdict, TC_ACT_UNSPEC);
	assert_in_range(gates().packets_tat_ns, from + 127 * 50 * TH_MS - TH_MS,
			th_now() + 128 * 50 * TH_MS);
	/* Here 129 packets take less than a second. */
	limits.packets = policy_rate(8ULL * 300, 1);
	assert_int_equal(slot_set_limits(run.n, &run.slot, &limits), 0);
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
	void (*const makes[])(struct packet *) = {
		make_options,
		make_tagged6,
		make_fragment,
		make_fragment6,
		make_extensions6,
		make_tags3,
		make_authentication,
		make_authentication_twice,
		make_authentication_fragment,
		make_authentication_in_ipip,
		make_ipip,
		make_ipip_twice,
		make_gre,
		make_vxlan,
		make_vxlan_fragment,
		make_vxlan_in_a_fragment,
	};

	struct packet p;

	for (size_t i = 0; i < TH_LEN(makes); i++) {
		struct th_result r;

		makes[i](&p);
		th_set_gates(&run, 0, th_now() + TH_SECOND);
		r = send(&p, 0);
		is_over(&r, 0, i + 1);
	}
	/* What follows the first fragment belongs to the same connection. */
	make_fragment(&p);
	p.data[14 + 6] = 0;
	p.data[14 + 7] = 2;
	assert_int_equal(send(&p, 0).counter, NATRA_COUNT_MICE);
}

/* In a tunnel and behind IPsec's header, too, only the first packet of a connection counts. */
TH_TEST_AFTER(other_packets_in_a_tunnel_pass, load_rx, load_tx, load_edt)
{
	struct packet others[5];

	make_authentication(&others[4]);
	others[4].data[others[4].l4 + 13] = ACK;
	begin_ipip(&others[0]);
	end_inside(&others[0], ACK);
	begin_vxlan(&others[1]);
	end_inside(&others[1], SYN | ACK);
	begin_vxlan(&others[2]);
	packet_type(&others[2], 0x0806);
	packet_pad(&others[2], LEN);
	/* This is the rest of a datagram. */
	make_ipip(&others[3]);
	others[3].data[others[3].l3 + 7] = 2;
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
	struct packet p;

	packet_begin(&p);
	packet_ethernet(&p);
	packet_type(&p, 0x88f7);
	packet_pad(&p, LEN);
	th_set_gates(&run, 0, th_now() + FAR);
	assert_int_equal(send(&p, 0).counter, NATRA_COUNT_MICE);
	for (size_t i = 0; i < 2 * TH_LEN(protocols); i++) {
		const uint8_t protocol = protocols[i / 2];

		packet_begin(&p);
		packet_ethernet(&p);
		if (i % 2)
			begin_ipip(&p);
		packet_ipv4(&p, &(struct packet_ip){0});
		p.data[p.l3 + 9] = protocol;
		packet_pad(&p, LEN);
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
	struct packet p;

	th_set_gates(&run, th_now() + FAR, 0);
	packet_begin_ipv6(&p, &(struct packet_ip){0});
	packet_echo(&p, 58, 135, 0);
	packet_end(&p);
	p.data[14 + 7] = 255;
	assert_int_equal(send(&p, 0).counter, NATRA_COUNT_OTHER);
	for (int i = 0; i < 200; i++) {
		p.data[14 + 8 + 15] = (uint8_t)i; /* another source */
		p.data[11] = (uint8_t)i;
		(void)send(&p, 0);
	}
	th_counters(&run, &sum);
	assert_in_range(sum.over_packets.packets, 100, 140);
}

/* A limit 100 times as high pays what a bucket owes in a hundredth of the time. */
TH_TEST(raised_limits_hold_at_once)
{
	const uint64_t hundredth_ns = FAR / 100;

	th_set_gates(&run, 0, 0);
	(void)send_tcp(1, ACK);
	th_set_gates(&run, th_now() + FAR, 0);
	limits.packets = policy_rate(8ULL * 2000, 1);
	assert_int_equal(slot_set_limits(run.n, &run.slot, &limits), 0);
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
		assert_int_equal(slot_set_limits(run.n, &run.slot, &limits), 0);
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
