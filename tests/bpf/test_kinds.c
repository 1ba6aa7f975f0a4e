/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests send every kind of packet through every program, and check the
 * verdict, the counter and the bytes. */
#include "cm.h"

#include <string.h>

#include "progrun.h"

/* A packet and its layers, see packet_of. */
static const struct kind {
	bool is_data; /* false if the link needs it */
	const char *layers;
} kinds[] = {
	{true, "eth ip4 tcp pad:1514"},
	{true, "eth ip6 tcp pad:1514"},
	{true, "eth ip4 udp"},
	{true, "eth ip6 udp"},
	{true, "eth ip4 ports:132:12"}, /* SCTP */
	{true, "eth ip6 ports:132:12"},
	{true, "eth ip6 ports:136:8"},         /* UDP-Lite */
	{true, "eth ip4 ports:47:4:0x0800:0"}, /* GRE */
	{true, "eth ip4 echo:1:8"},
	{true, "eth ip6 echo:58:128"},
	/* A neighbour solicitation as a router would forward it. */
	{true, "eth ip6:h254 echo:58:135"},
	{true, "eth ip4:f0x2000 udp"},
	{true, "eth ip4:f100"},
	{true, "eth ip6 frag:1:7 udp"},
	{true, "eth ip6 frag:1448:7"},
	{true, "eth ip4:o10 tcp:60"},
	{true, "eth ip6 ext:0:8 ext:43:24 ext:51:24 ext:60:16 tcp"},
	{true, "eth ip6 ext:60:8 ext:60:8 ext:60:8 ext:60:8 ext:60:8 tcp"},
	{true, "eth vlan ip4 tcp"},
	{true, "eth vlan vlan ip4 tcp"},
	{true, "eth vlan vlan vlan ip4 tcp"},
	{true, "eth type:0x0800 pay:500"},
	{true, "eth type:0x86dd pay:500"},
	/* Cut in IP's header. They have a tag because Linux 6.18 runs no test on an
	 * untagged frame of this kind. */
	{true, "eth vlan type:0x0800 pay:1"},
	{true, "eth vlan type:0x86dd hex:6000000000003b40 pay:22"},
	/* Cut in front of its ports. */
	{true, "eth ip4 next:6"},
	{true, "eth type:0xfffe pay:500"},
	/* An experiment's, MPLS and PPPoE. */
	{true, "eth type:0x88b5 pay:500"},
	{true, "eth svlan svlan:11 type:0x88b5 pay:500"},
	{true, "eth type:0x8847 pay:524"},
	{true, "eth type:0x8864 pay:528"},
	{false, "eth type:0x0806 pay:28"}, /* ARP */
	{false, "eth svlan vlan:11 type:0x0806 pay:28"},
	{false, "eth type:0x0806 pay:1"},
	{false, "eth type:0x88cc pay:100"}, /* LLDP */
	{false, "eth type:0x8809 pay:110"}, /* LACP */
	{false, "eth type:0x888e pay:50"},  /* IEEE 802.1X */
	/* STP has a length in place of a type, followed by LLC. */
	{false, "eth type:38 pay:46"},
	{false, "eth ip6:h255 echo:58:135"},
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
		const struct packet p = packet_of("%s", k->layers);
		struct th_result result;

		/* th_send fails unless exactly one counter grows. */
		th_send(run, &p, NULL, &result);
		if (result.counter != (k->is_data ? data : control))
			fail_msg("%s: counter %u", k->layers,
				 (unsigned int)result.counter);
		if (result.verdict != (k->is_data ? verdict : TC_ACT_UNSPEC))
			fail_msg("%s: verdict %d", k->layers, result.verdict);
		if (result.bytes != p.len)
			fail_msg("%s: %u bytes", k->layers,
				 (unsigned int)result.bytes);
		assert_int_equal(result.len, p.len);
		assert_memory_equal(result.data, p.data, p.len);
	}
}

TH_TEST(within_the_limits_all_passes)
{
	const struct natra_limits none = {0};
	struct natra_limits free_mice = th_limits(), wide = free_mice;

	free_mice.pass = NATRA_PASS_FREE;
	wide.rate = policy_rate(8000000, 1000000);
	for (size_t i = 0; i < TH_LEN(programs); i++) {
		struct progrun run = th_load_kind(programs[i], &free_mice);

		check_all(&run, NATRA_COUNT_MICE, TC_ACT_UNSPEC);
		th_close(&run);
		run = th_load_kind(programs[i], &wide);
		check_all(&run, NATRA_COUNT_ADMITTED, TC_ACT_UNSPEC);
		th_close(&run);
		run = th_load_kind(programs[i], &none);
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
	const struct program_options options = {.kind = STUB_RX};
	static const char *const layers[] = {"ip4 tcp", "ip6 ext:0:8 tcp",
					     "hex:10 pay:60"};
	struct natra_limits limits = th_limits();
	struct th_result result;
	struct progrun run;

	limits.pass = NATRA_PASS_FREE;
	th_load(&run, &options, &limits);
	for (size_t i = 0; i < TH_LEN(layers); i++) {
		const struct packet p = packet_of("%s", layers[i]);

		th_send(&run, &p, NULL, &result);
		assert_int_equal(result.counter, NATRA_COUNT_MICE);
	}
	th_close(&run);
}

static enum natra_counter send_type(struct progrun *run, uint16_t type,
				    size_t len)
{
	const struct packet p = packet_of("eth type:%u pay:%zu", type, len);
	struct th_result result;

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
