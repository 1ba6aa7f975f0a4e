/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check the table of flows that natractl top shows, and that a flow
 * has one identity in it. */
#include "cm.h"

#include <bpf/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "progrun.h"
#include "util/cleanup.h"

static struct progrun run;
static struct natra_flow_entry flows[NATRA_FLOWS];

static void load_program(bool tells_inner)
{
	const struct program_options options = {
		.kind = STUB_TX,
		.has_l2 = true,
		.tells_inner = tells_inner,
	};
	struct natra_limits limits = th_limits();

	limits.rate = policy_rate(8000000, 10000000);
	th_load(&run, &options, &limits);
}

TH_STEP(load, load_program(true))

TH_STEP(unload, th_close(&run))

static void send(struct packet p)
{
	struct th_result r;

	th_send(&run, &p, NULL, &r);
}

/* Reads the table, moves the used entries to the front and returns their
 * number. */
static size_t read_flows(void)
{
	size_t len = 0;

	assert_int_equal(slot_flows(run.n, &run.slot, flows), 0);
	for (size_t i = 0; i < NATRA_FLOWS; i++) {
		if (flows[i].tag)
			flows[len++] = flows[i];
	}
	return len;
}

TH_TEST(heavy_flow_is_listed_with_its_tuple)
{
	const uint8_t saddr[] = {192, 0, 2, 1}, daddr[] = {198, 51, 100, 1};
	const uint8_t ports[] = {1000 >> 8, 1000 & 0xff, 0, 80};

	assert_int_equal(read_flows(), 0);
	send(packet_of("eth ip4 tcp pad:1514"));
	send(packet_of("eth ip4 tcp pad:1514"));
	assert_int_equal(read_flows(), 1);
	assert_int_equal(flows[0].tuple.version, 4);
	assert_int_equal(flows[0].tuple.protocol, 6);
	assert_int_equal(flows[0].tuple.fragment, 0);
	assert_memory_equal(flows[0].tuple.saddr, saddr, 4);
	assert_memory_equal(flows[0].tuple.daddr, daddr, 4);
	assert_memory_equal(&flows[0].tuple.ports, ports, 4);
	assert_int_equal(flows[0].packets, 2);
	assert_int_equal(flows[0].bytes, 2 * 1514);
	assert_true((uint32_t)(th_now() >> NATRA_FLOW_TICK_SHIFT) -
			    flows[0].last <
		    10000);
}

/* The fast path reads the packet's memory, and the slow path copies it. */
TH_TEST(plain_and_optioned_packets_share_one_estimate)
{
	struct natra_limits limits = th_limits();
	struct th_result r;
	struct packet p;

	limits.pass = NATRA_PASS_FREE;
	limits.enter_units = 40;
	limits.leave_units = 5;
	th_set_limits(&run, &limits);
	packet_make_tcp4(&p, 1000, 0, 1514);
	th_send(&run, &p, NULL, &r);
	assert_int_equal(r.counter, NATRA_COUNT_MICE);
	p = packet_of("eth ip4:o1 tcp pad:2000");
	/* The first packet's 24 units are at least 12 even if a window has
	 * ended since, and this packet's 31 are then over the threshold of
	 * 40. */
	th_send(&run, &p, NULL, &r);
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
}

TH_TEST(pieces_of_a_datagram_are_one_flow)
{
	static const uint16_t pieces[] = {PACKET_MORE_FRAGMENTS,
					  PACKET_MORE_FRAGMENTS | 10, 20};

	for (size_t i = 0; i < TH_LEN(pieces); i++)
		send(packet_of("eth ip4:i77:f%u udp pay:72", pieces[i]));
	assert_int_equal(read_flows(), 1);
	assert_int_equal(flows[0].tuple.fragment, 1);
	assert_int_equal(flows[0].packets, TH_LEN(pieces));
}

/* Sends a datagram in pieces of 1500 bytes, without the first one if its port is 0. */
static enum natra_counter send_pieces(uint16_t port, bool ipv6, uint16_t id,
				      uint16_t count)
{
	struct th_result r = {0};
	struct packet p;

	for (uint16_t i = port ? 0 : 1; i < count; i++) {
		const bool more = i + 1 < count;

		if (ipv6)
			p = packet_of("eth ip6 frag:%d:%u udp:53:%u pad:1500",
				      i * 1448 + more, id, port);
		else
			p = packet_of("eth ip4:i%u:f%d udp:53:%u pad:1500", id,
				      i * 181 + more * PACKET_MORE_FRAGMENTS,
				      port);
		th_send(&run, &p, NULL, &r);
	}
	return r.counter;
}

/* Fragments are of their datagram's flow, so those of one do not suffer for another's. */
TH_TEST(datagrams_in_pieces_are_of_their_flows)
{
	struct natra_limits limits = th_limits();

	limits.pass = NATRA_PASS_FREE;
	th_set_limits(&run, &limits);
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		th_set_tat(&run, th_now() + 3600 * TH_SECOND);
		for (uint16_t id = 1; id < 10; id++)
			(void)send_pieces(1000, ipv6, id, 8);
		assert_int_equal(send_pieces(1000, ipv6, 10, 2),
				 NATRA_COUNT_DROPPED_RATE);
		assert_int_equal(send_pieces(2000, ipv6, 11, 3),
				 NATRA_COUNT_MICE);
		/* Those whose first piece has not come are one flow together, and
		 * cannot be many mice. */
		for (uint16_t id = 20; id < 30; id++)
			(void)send_pieces(0, ipv6, id, 2);
		assert_int_equal(send_pieces(0, ipv6, 30, 2),
				 NATRA_COUNT_DROPPED_RATE);
	}
}

/* A flow that is heavy from a later piece on is listed with its ports from its next datagram on,
 * and datagrams without a first piece are listed without ports. */
TH_TEST(datagrams_in_pieces_are_listed)
{
	struct natra_limits limits = th_limits();

	limits.pass = NATRA_PASS_FREE;
	/* A piece has 23 or 24 of them. */
	limits.enter_units = 30;
	limits.leave_units = 5;
	th_set_limits(&run, &limits);
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		(void)send_pieces(1000, ipv6, 1, 3);
		assert_int_equal(read_flows(), 2 * ipv6);
		(void)send_pieces(1000, ipv6, 2, 3);
		assert_int_equal(read_flows(), 2 * ipv6 + 1);
		(void)send_pieces(0, ipv6, 3, 8);
		assert_int_equal(read_flows(), 2 * ipv6 + 2);
	}
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(flows[i].tuple.fragment, 1);
		assert_int_equal(flows[i].packets,
				 flows[i].tuple.ports ? 3 : 6);
	}
}

/* Sends a packet of a WireGuard tunnel with this hash. A test run's socket has port 0. Behind a
 * VLAN tag the packet takes the slow path. */
static enum natra_counter send_inner(uint16_t port, uint32_t hash, bool tagged)
{
	const struct th_context context = {.hash = hash};
	struct th_result r;
	struct packet p;

	packet_begin(&p);
	packet_ethernet(&p);
	if (tagged)
		packet_vlan(&p, 0x8100, 10);
	packet_ipv4(&p, &(struct packet_ip){0});
	packet_udp(&p, port, 51820);
	packet_payload(&p, 1400);
	memcpy(p.data + p.len - 1400, "\4\0\0\0", 4);
	packet_end(&p);
	th_send(&run, &p, &context, &r);
	return r.counter;
}

TH_TEST(flows_of_a_tunnel_are_told_apart_and_listed_as_one)
{
	struct natra_limits limits = th_limits();

	limits.pass = NATRA_PASS_FREE;
	assert_int_equal(slot_set_limits(run.n, &run.slot, &limits), 0);
	th_use_prelude(&run);
	for (int tagged = 0; tagged < 2; tagged++) {
		th_set_tat(&run, th_now() + 3600 * TH_SECOND);
		th_clear_sketch(&run);
		for (int i = 0; i < 10; i++)
			(void)send_inner(1000, 0xff01, tagged);
		assert_int_equal(send_inner(1000, 1, tagged),
				 NATRA_COUNT_DROPPED_RATE);
		assert_int_equal(send_inner(1000, 2, tagged), NATRA_COUNT_MICE);
	}
	/* A socket's own packets are one flow, whatever their hash. */
	for (uint32_t hash = 1; hash < 10; hash++)
		(void)send_inner(0, hash, false);
	assert_int_equal(send_inner(0, 10, false), NATRA_COUNT_DROPPED_RATE);

	limits.pass = NATRA_PASS_OFF;
	assert_int_equal(slot_set_limits(run.n, &run.slot, &limits), 0);
	(void)send_inner(1000, 2, false);
	assert_int_equal(read_flows(), 2);
	assert_int_equal(flows[0].tuple.inner, 0);
	assert_int_equal(flows[1].tuple.inner, 0);
	assert_int_not_equal(flows[0].tuple.ports, flows[1].tuple.ports);
}

/* A stream that loses packets to a policer takes another hash each time. */
TH_TEST(tunnel_that_nothing_holds_is_one_flow)
{
	struct natra_limits limits = th_limits();

	th_close(&run);
	load_program(false);
	limits.pass = NATRA_PASS_FREE;
	th_set_limits(&run, &limits);
	th_use_prelude(&run);
	for (int tagged = 0; tagged < 2; tagged++) {
		th_set_tat(&run, th_now() + 3600 * TH_SECOND);
		th_clear_sketch(&run);
		for (uint32_t hash = 1; hash < 10; hash++)
			(void)send_inner(1000, hash, tagged);
		assert_int_equal(send_inner(1000, 10, tagged),
				 NATRA_COUNT_DROPPED_RATE);
	}
}

TH_TEST(mice_and_what_is_not_ip_are_not_listed)
{
	struct natra_limits limits = th_limits();

	limits.pass = NATRA_PASS_FREE;
	th_set_limits(&run, &limits);
	send(packet_of("eth ip4 tcp pad:200"));
	send(packet_of("eth type:0x0806 pay:28"));
	assert_int_equal(read_flows(), 0);
}

TH_TEST(table_keeps_at_most_32_flows_each_once)
{
	size_t len;

	for (unsigned int i = 0; i < 1000; i++)
		send(packet_of("eth ip4 tcp:20:%u pad:200", 1 + i / 2));
	len = read_flows();
	assert_in_range(len, NATRA_FLOWS / 2, NATRA_FLOWS);
	for (size_t i = 0; i < len; i++) {
		/* A flow may get its entry at its second packet. */
		assert_in_range(flows[i].packets, 1, 2);
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(flows[i].tuple.ports,
					     flows[j].tuple.ports);
	}
}

TH_TEST(entry_whose_tuple_is_not_its_own_is_hidden)
{
	struct natra_state value;

	send(packet_of("eth ip4 tcp pad:200"));
	assert_int_equal(read_flows(), 1);
	value = th_read_state(&run);
	for (size_t i = 0; i < NATRA_FLOWS; i++) {
		if (value.flows[i].tag)
			value.flows[i].tuple.daddr[0] ^= 1;
	}
	th_write_state(&run, &value);
	assert_int_equal(read_flows(), 0);
}

TH_BPF_MAIN(load, unload)
