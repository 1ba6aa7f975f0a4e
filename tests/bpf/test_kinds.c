/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests send every kind of packet through every program, and check the
 * verdict, the counter and the bytes. */
#include "cm.h"

#include <string.h>

#include "progrun.h"

struct kind {
	const char *name;
	bool is_data; /* false if the link needs it */
	void (*build)(struct packet *p);
};

static const struct packet_ip plain;

static void tcp4(struct packet *p)
{
	packet_make_tcp4(p, 1000, 0, 1514);
}

static void tcp6(struct packet *p)
{
	packet_make_tcp6(p, 1000, 0, 1514);
}

static void udp4(struct packet *p)
{
	packet_begin_ipv4(p, &plain);
	packet_udp(p, 1000, 53);
}

static void udp6(struct packet *p)
{
	packet_begin_ipv6(p, &plain);
	packet_udp(p, 1000, 53);
}

static void sctp4(struct packet *p)
{
	packet_begin_ipv4(p, &plain);
	packet_ports(p, 132, 1000, 53, 12);
}

static void sctp6(struct packet *p)
{
	packet_begin_ipv6(p, &plain);
	packet_ports(p, 132, 1000, 53, 12);
}

static void udplite6(struct packet *p)
{
	packet_begin_ipv6(p, &plain);
	packet_ports(p, 136, 1000, 53, 8);
}

static void gre4(struct packet *p)
{
	packet_begin_ipv4(p, &plain);
	packet_ports(p, 47, 0, 0x0800, 4);
}

static void icmp4(struct packet *p)
{
	packet_begin_ipv4(p, &plain);
	packet_echo(p, 1, 8, 5);
}

static void icmp6(struct packet *p)
{
	packet_begin_ipv6(p, &plain);
	packet_echo(p, 58, 128, 5);
}

static void first_fragment4(struct packet *p)
{
	packet_begin_ipv4(
		p, &(struct packet_ip){.fragment = PACKET_MORE_FRAGMENTS});
	packet_udp(p, 1000, 53);
}

static void last_fragment4(struct packet *p)
{
	packet_begin_ipv4(p, &(struct packet_ip){.fragment = 100});
}

static void first_fragment6(struct packet *p)
{
	packet_begin_ipv6(p, &plain);
	packet_ipv6_fragment(p, 1, 7);
	packet_udp(p, 1000, 53);
}

static void last_fragment6(struct packet *p)
{
	packet_begin_ipv6(p, &plain);
	packet_ipv6_fragment(p, 1448, 7);
}

static void options4(struct packet *p)
{
	packet_begin_ipv4(p, &(struct packet_ip){.options = 10});
	packet_tcp(p, 1000, 80, 60);
}

static void extensions6(struct packet *p)
{
	packet_begin_ipv6(p, &plain);
	packet_extension(p, 0, 8);
	packet_extension(p, 43, 24);
	packet_extension(p, 51, 24);
	packet_extension(p, 60, 16);
	packet_tcp(p, 1000, 80, 20);
}

static void five_extensions6(struct packet *p)
{
	packet_begin_ipv6(p, &plain);
	for (int i = 0; i < 5; i++)
		packet_extension(p, 60, 8);
	packet_tcp(p, 1000, 80, 20);
}

static void tagged(struct packet *p, int tags)
{
	packet_begin(p);
	packet_ethernet(p);
	for (int i = 0; i < tags; i++)
		packet_vlan(p, 0x8100, (uint16_t)(10 + i));
	packet_ipv4(p, &plain);
	packet_tcp(p, 1000, 80, 20);
}

static void vlan(struct packet *p)
{
	tagged(p, 1);
}

static void two_vlans(struct packet *p)
{
	tagged(p, 2);
}

static void three_vlans(struct packet *p)
{
	tagged(p, 3);
}

static void other_type(struct packet *p, uint16_t type, size_t len)
{
	packet_begin(p);
	packet_ethernet(p);
	packet_type(p, type);
	packet_payload(p, len);
}

static void arp(struct packet *p)
{
	other_type(p, 0x0806, 28);
}

static void lldp(struct packet *p)
{
	other_type(p, 0x88cc, 100);
}

static void lacp(struct packet *p)
{
	other_type(p, 0x8809, 110);
}

static void eapol(struct packet *p)
{
	other_type(p, 0x888e, 50);
}

/* An STP frame has a length in place of an EtherType, followed by LLC. */
static void stp(struct packet *p)
{
	other_type(p, 38, 46);
}

static void arp_in_two_vlans(struct packet *p)
{
	packet_begin(p);
	packet_ethernet(p);
	packet_vlan(p, 0x88a8, 10);
	packet_vlan(p, 0x8100, 11);
	packet_type(p, 0x0806);
	packet_payload(p, 28);
}

static void discovery(struct packet *p, uint8_t type, uint8_t hop_limit)
{
	packet_begin_ipv6(p, &plain);
	packet_echo(p, 58, type, 0);
	p->data[p->l3 + 7] = hop_limit;
}

/* A neighbour solicitation, as a neighbour sends it and as a router would forward it. */
static void solicitation(struct packet *p)
{
	discovery(p, 135, 255);
}

static void solicitation_from_afar(struct packet *p)
{
	discovery(p, 135, 254);
}

static void experiment(struct packet *p)
{
	other_type(p, 0x88b5, 500);
}

static void experiment_in_two_vlans(struct packet *p)
{
	packet_begin(p);
	packet_ethernet(p);
	packet_vlan(p, 0x88a8, 10);
	packet_vlan(p, 0x88a8, 11);
	packet_type(p, 0x88b5);
	packet_payload(p, 500);
}

/* The packet has one MPLS label, followed by IPv4. */
static void mpls(struct packet *p)
{
	other_type(p, 0x8847, 4 + 20 + 500);
}

static void pppoe(struct packet *p)
{
	other_type(p, 0x8864, 8 + 20 + 500);
}

static void garbage(struct packet *p)
{
	other_type(p, 0xfffe, 500);
}

static void garbage_as_ipv4(struct packet *p)
{
	other_type(p, 0x0800, 500);
}

static void garbage_as_ipv6(struct packet *p)
{
	other_type(p, 0x86dd, 500);
}

/* The packet has a tag because Linux 6.18 runs no test on an untagged frame
 * whose IP header is cut. */
static void ipv4_of_one_byte(struct packet *p)
{
	packet_begin(p);
	packet_ethernet(p);
	packet_vlan(p, 0x8100, 10);
	packet_type(p, 0x0800);
	packet_payload(p, 1);
}

static void ipv6_cut_in_its_addresses(struct packet *p)
{
	packet_begin(p);
	packet_ethernet(p);
	packet_vlan(p, 0x8100, 10);
	packet_ipv6(p, &plain);
	p->len -= 10;
	p->l3 = PACKET_NO_LAYER;
}

static void tcp_cut_before_its_ports(struct packet *p)
{
	tcp4(p);
	p->len = 14 + 20;
}

static void arp_of_one_byte(struct packet *p)
{
	other_type(p, 0x0806, 1);
}

static const struct kind kinds[] = {
#define IP(name)                                                               \
	{                                                                      \
#name, true, name                                              \
	}
#define OTHER(name) IP(name)
#define CONTROL(name)                                                          \
	{                                                                      \
#name, false, name                                             \
	}
	IP(tcp4),
	IP(tcp6),
	IP(udp4),
	IP(udp6),
	IP(sctp4),
	IP(sctp6),
	IP(udplite6),
	IP(gre4),
	IP(icmp4),
	IP(icmp6),
	IP(solicitation_from_afar),
	IP(first_fragment4),
	IP(last_fragment4),
	IP(first_fragment6),
	IP(last_fragment6),
	IP(options4),
	IP(extensions6),
	IP(five_extensions6),
	IP(vlan),
	IP(two_vlans),
	IP(three_vlans),
	IP(garbage_as_ipv4),
	IP(garbage_as_ipv6),
	IP(ipv4_of_one_byte),
	IP(ipv6_cut_in_its_addresses),
	IP(tcp_cut_before_its_ports),
	OTHER(garbage),
	OTHER(experiment),
	OTHER(experiment_in_two_vlans),
	OTHER(mpls),
	OTHER(pppoe),
	CONTROL(arp),
	CONTROL(arp_in_two_vlans),
	CONTROL(arp_of_one_byte),
	CONTROL(lldp),
	CONTROL(lacp),
	CONTROL(eapol),
	CONTROL(stp),
	CONTROL(solicitation),
};

static const enum stub_kind programs[] = {STUB_RX, STUB_TX, STUB_EDT};

/* Packets with data must get this counter and verdict, and packets that the
 * link needs must pass. */
static void check_all(struct progrun *run, enum natra_counter data, int verdict)
{
	const enum natra_counter control = data == NATRA_COUNT_UNLIMITED
						   ? NATRA_COUNT_UNLIMITED
						   : NATRA_COUNT_OTHER;

	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		const struct kind *k = &kinds[i];
		struct th_result result;
		struct packet p;

		k->build(&p);
		packet_end(&p);
		/* th_send fails unless exactly one counter grows. */
		th_send(run, &p, NULL, &result);
		if (result.counter != (k->is_data ? data : control))
			fail_msg("%s: counter %u", k->name,
				 (unsigned int)result.counter);
		if (result.verdict != (k->is_data ? verdict : TC_ACT_UNSPEC))
			fail_msg("%s: verdict %d", k->name, result.verdict);
		if (result.bytes != p.len)
			fail_msg("%s: %u bytes", k->name,
				 (unsigned int)result.bytes);
		assert_int_equal(result.len, p.len);
		assert_memory_equal(result.data, p.data, p.len);
	}
}

TH_TEST(small_flows_pass_as_mice)
{
	struct natra_limits limits = th_limits();

	limits.pass = NATRA_PASS_FREE;
	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);

		check_all(&run, NATRA_COUNT_MICE, TC_ACT_UNSPEC);
		th_close(&run);
	}
}

TH_TEST(heavy_flows_within_the_rate_are_admitted)
{
	struct natra_limits limits = th_limits();

	limits.rate = policy_rate(8000000, 1000000);
	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);

		check_all(&run, NATRA_COUNT_ADMITTED, TC_ACT_UNSPEC);
		th_close(&run);
	}
}

TH_TEST(unlimited_direction_passes_all)
{
	const struct natra_limits limits = {0};

	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);

		check_all(&run, NATRA_COUNT_UNLIMITED, TC_ACT_UNSPEC);
		assert_int_equal(th_tat(&run), 0);
		th_close(&run);
	}
}

TH_TEST(over_every_limit_all_data_is_dropped)
{
	static const enum natra_counter counters[] = {
		[STUB_RX] = NATRA_COUNT_DROPPED_RATE,
		[STUB_TX] = NATRA_COUNT_DROPPED_RATE,
		[STUB_EDT] = NATRA_COUNT_DROPPED_HORIZON,
	};
	const struct natra_limits limits = th_limits();

	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);
		uint64_t tat = th_now() + 3600 * TH_SECOND;

		th_set_tat(&run, tat);
		check_all(&run, counters[programs[i]], TC_ACT_SHOT);
		assert_int_equal(th_tat(&run), tat);
		th_close(&run);
	}
}

TH_TEST(device_without_ethernet_begins_with_ip)
{
	const struct program_options options = {
		.kind = STUB_RX,
	};
	struct natra_limits limits = th_limits();
	struct th_result result;
	struct progrun run;
	struct packet p;

	limits.pass = NATRA_PASS_FREE;
	th_load(&run, &options, &limits);
	packet_begin(&p);
	packet_ipv4(&p, &plain);
	packet_tcp(&p, 1000, 80, 20);
	packet_end(&p);
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.counter, NATRA_COUNT_MICE);
	packet_begin(&p);
	packet_ipv6(&p, &plain);
	packet_extension(&p, 0, 8);
	packet_tcp(&p, 1000, 80, 20);
	packet_end(&p);
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.counter, NATRA_COUNT_MICE);
	p.data[0] = 0x10; /* no IP version */
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.counter, NATRA_COUNT_MICE);
	th_close(&run);
}

static enum natra_counter send_type(struct progrun *run, uint16_t type,
				    size_t len)
{
	struct th_result result;
	struct packet p;

	other_type(&p, type, len);
	packet_end(&p);
	th_send(run, &p, NULL, &result);
	assert_int_equal(result.len, p.len);
	assert_memory_equal(result.data, p.data, p.len);
	return result.counter;
}

static enum natra_counter flood(struct progrun *run, uint16_t type, size_t len)
{
	enum natra_counter counter = NATRA_COUNT_MAX;

	/* The threshold is 6400 bytes, and at the end of a window half of what
	 * was sent may be forgotten. */
	for (size_t sent = 0; sent < 20000; sent += len)
		counter = send_type(run, type, len);
	return counter;
}

TH_TEST(each_ethertype_is_a_flow_that_may_be_heavy)
{
	struct natra_limits limits = th_limits();

	limits.pass = NATRA_PASS_FREE;
	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &limits);
		enum natra_counter dropped =
			programs[i] == STUB_EDT ? NATRA_COUNT_DROPPED_HORIZON
						: NATRA_COUNT_DROPPED_RATE;

		th_set_tat(&run, th_now() + 3600 * TH_SECOND);
		assert_int_equal(send_type(&run, 0x88b5, 1500),
				 NATRA_COUNT_MICE);
		assert_int_equal(flood(&run, 0x88b5, 1500), dropped);
		assert_int_equal(send_type(&run, 0x88b6, 1500),
				 NATRA_COUNT_MICE);
		assert_int_equal(send_type(&run, 0x0806, 28),
				 NATRA_COUNT_OTHER);
		/* A flood of ARP packets is limited like any other. */
		assert_int_equal(flood(&run, 0x0806, 28), dropped);
		assert_int_equal(send_type(&run, 0x88cc, 100),
				 NATRA_COUNT_MICE);
		th_close(&run);
	}
}

/* Both buckets are in debt for an hour, and packets that the link needs still
 * pass. */
TH_TEST(link_is_not_lost_whatever_is_charged)
{
	static const uint32_t strict[] = {NATRA_PASS_STRICT, NATRA_PASS_OFF};
	struct natra_limits limits = th_limits();

	for (size_t i = 0; i < TH_LEN(strict); i++) {
		const uint64_t tat = th_now() + 3600 * TH_SECOND;
		struct progrun run;

		limits.pass = strict[i];
		run = th_load_kind(STUB_RX, &limits);
		th_set_tat(&run, tat);
		th_set_mice_tat(&run, tat);
		check_all(&run, NATRA_COUNT_DROPPED_RATE, TC_ACT_SHOT);
		assert_int_equal(th_tat(&run), tat);
		assert_int_equal(th_mice_tat(&run), tat);
		th_close(&run);
	}
}

/* The packet has ECT where an IP packet has its ECN bits, and an IP packet
 * would be marked at this overdraft. */
TH_TEST(what_is_not_ip_is_not_marked)
{
	const struct natra_limits limits = th_limits();
	struct progrun run = th_load_kind(STUB_RX, &limits);

	th_set_tat(&run, th_now() + TH_SECOND);
	assert_int_equal(send_type(&run, 0x88b5, 500),
			 NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(send_type(&run, 0x8847, 500),
			 NATRA_COUNT_DROPPED_RATE);
	th_close(&run);
}

TH_BPF_MAIN(NULL, NULL)
