/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check which peers are limited, for each kind of packet, both ends
 * of it and both kinds of list. */
#include "cm.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "progrun.h"
#include "util/cleanup.h"

/* These are the addresses of packet.h. */
#define FROM4 "192.0.2.1/32"
#define TO4   "198.51.100.1/32"
#define FROM6 "2001:db8::1/128"
#define TO6   "2001:db8::81/128"

static const struct packet_ip plain;

static void begin4(struct packet *p, int tags, const struct packet_ip *ip)
{
	packet_begin(p);
	packet_ethernet(p);
	for (int i = 0; i < tags; i++)
		packet_vlan(p, 0x8100, (uint16_t)(10 + i));
	packet_ipv4(p, ip);
}

static void begin6(struct packet *p, int tags)
{
	packet_begin(p);
	packet_ethernet(p);
	for (int i = 0; i < tags; i++)
		packet_vlan(p, 0x8100, (uint16_t)(10 + i));
	packet_ipv6(p, &plain);
}

static void tcp4(struct packet *p)
{
	packet_make_tcp4(p, 1000, 0, 1514);
}

static void tcp6(struct packet *p)
{
	packet_make_tcp6(p, 1000, 0, 1514);
}

static void icmp4(struct packet *p)
{
	begin4(p, 0, &plain);
	packet_echo(p, 1, 8, 5);
}

static void options4(struct packet *p)
{
	begin4(p, 0, &(struct packet_ip){.options = 10});
	packet_tcp(p, 1000, 80, 60);
}

static void first_fragment4(struct packet *p)
{
	begin4(p, 0, &(struct packet_ip){.fragment = PACKET_MORE_FRAGMENTS});
	packet_udp(p, 1000, 53);
}

static void last_fragment4(struct packet *p)
{
	begin4(p, 0, &(struct packet_ip){.fragment = 100});
}

static void vlan4(struct packet *p)
{
	begin4(p, 1, &plain);
	packet_tcp(p, 1000, 80, 20);
}

static void two_vlans4(struct packet *p)
{
	begin4(p, 2, &plain);
	packet_tcp(p, 1000, 80, 20);
}

static void udp6(struct packet *p)
{
	begin6(p, 0);
	packet_udp(p, 1000, 53);
}

static void vlan6(struct packet *p)
{
	begin6(p, 1);
	packet_udp(p, 1000, 53);
}

static void extensions6(struct packet *p)
{
	begin6(p, 0);
	packet_extension(p, 0, 8);
	packet_extension(p, 43, 24);
	packet_extension(p, 51, 24);
	packet_extension(p, 60, 16);
	packet_tcp(p, 1000, 80, 20);
}

static void first_fragment6(struct packet *p)
{
	begin6(p, 0);
	packet_ipv6_fragment(p, 1, 7);
	packet_udp(p, 1000, 53);
}

static void last_fragment6(struct packet *p)
{
	begin6(p, 0);
	packet_ipv6_fragment(p, 1448, 7);
}

static const struct kind {
	const char *name;
	void (*build)(struct packet *p);
	int version;
} kinds[] = {
	{"tcp4", tcp4, 4},
	{"tcp6", tcp6, 6},
	{"icmp4", icmp4, 4},
	{"options4", options4, 4},
	{"first fragment4", first_fragment4, 4},
	{"last fragment4", last_fragment4, 4},
	{"vlan4", vlan4, 4},
	{"two vlans4", two_vlans4, 4},
	{"udp6", udp6, 6},
	{"vlan6", vlan6, 6},
	{"extensions6", extensions6, 6},
	{"first fragment6", first_fragment6, 6},
	{"last fragment6", last_fragment6, 6},
};

/* Loads a program with its map of subnets. All flows are heavy, so a packet
 * that is limited counts as admitted. */
static void load(struct progrun *run, enum stub_kind program, bool peer_is_to,
		 enum subnets_kind kind, const char *const *blocks, size_t len)
{
	const struct program_options options = {
		.kind = program,
		.has_l2 = true,
	};
	struct natra_policy policy = NATRA_INIT(policy);
	cleanup_subnets struct subnets subnets = {0};
	struct natra_limits limits = th_limits();

	policy.shaped_subnets = blocks;
	policy.shaped_subnets_len = len;
	limits.rate = policy_rate(8000000, 100000000);
	assert_int_equal(subnets_read(&policy, &subnets), 0);
	subnets.kind = kind;
	th_load_peers(run, &options, &(struct th_peers){&subnets, peer_is_to},
		      &limits);
}

/* Returns whether the packet was limited, by which of two counters grew. */
static bool is_limited(struct progrun *run, const struct kind *kind)
{
	struct th_result result;
	struct packet p;

	kind->build(&p);
	packet_end(&p);
	th_send(run, &p, NULL, &result);
	if (result.verdict != TC_ACT_UNSPEC || result.bytes != p.len)
		fail_msg("%s: verdict %d, %u bytes", kind->name, result.verdict,
			 (unsigned int)result.bytes);
	if (result.counter != NATRA_COUNT_ADMITTED &&
	    result.counter != NATRA_COUNT_UNLIMITED)
		fail_msg("%s: counter %u", kind->name,
			 (unsigned int)result.counter);
	return result.counter == NATRA_COUNT_ADMITTED;
}

static void all_kinds(enum stub_kind program, bool peer_is_to,
		      enum subnets_kind subnets, int version)
{
	static const char *const blocks[2][2] = {
		{FROM4, TO4},
		{FROM6, TO6},
	};

	/* The list has one end of the packets: the peer, which decides whether
	 * they are limited, or the pod, which does not. */
	for (int end = 0; end < 2; end++) {
		bool in_list = peer_is_to == (end == 1);
		bool limited = in_list == (subnets == SUBNETS_SHAPED);
		struct progrun run;

		load(&run, program, peer_is_to, subnets,
		     &blocks[version == 6][end], 1);
		for (size_t i = 0; i < TH_LEN(kinds); i++) {
			if (kinds[i].version == version &&
			    is_limited(&run, &kinds[i]) != limited)
				fail_msg("%s: program %d, peer %d, list %d",
					 kinds[i].name, program, peer_is_to,
					 subnets);
		}
		th_close(&run);
	}
}

static void peer_decides_and_not_the_pod(void **state)
{
	(void)state;
	for (int program = 0; program < STUB_KIND_MAX; program++) {
		for (int to = 0; to < 2; to++) {
			for (int v = 4; v <= 6; v += 2) {
				all_kinds((enum stub_kind)program, to,
					  SUBNETS_SHAPED, v);
				all_kinds((enum stub_kind)program, to,
					  SUBNETS_UNSHAPED, v);
			}
		}
	}
}

static void three_vlans(struct packet *p)
{
	begin4(p, 3, &plain);
	packet_tcp(p, 1000, 80, 20);
}

/* The packet has a tag because Linux 6.18 runs no test on an untagged frame
 * whose IP header is cut. */
static void cut_in_its_addresses(struct packet *p)
{
	begin6(p, 1);
	p->len -= 10;
	p->l3 = PACKET_NO_LAYER;
}

/* Hiding its addresses does not get a packet past the limits. */
static void what_hides_its_addresses_is_limited(void **state)
{
	static const char *const all[] = {"0.0.0.0/0", "::/0"};
	static const struct kind hidden[] = {
		{"three vlans", three_vlans, 0},
		{"cut in its addresses", cut_in_its_addresses, 0},
	};

	(void)state;
	for (int k = SUBNETS_SHAPED; k <= SUBNETS_UNSHAPED; k++) {
		struct progrun run;

		load(&run, STUB_TX, true, (enum subnets_kind)k, all, 2);
		for (size_t i = 0; i < TH_LEN(hidden); i++) {
			/* The packet before this one has known addresses, which
			 * must not be taken for this one's. */
			assert_int_equal(is_limited(&run, &kinds[0]),
					 k == SUBNETS_SHAPED);
			assert_true(is_limited(&run, &hidden[i]));
		}
		th_close(&run);
	}
}

static void what_is_not_ip_stays_other(void **state)
{
	static const char *const none[] = {"203.0.113.0/24"};
	struct th_result result;
	struct progrun run;
	struct packet p;

	(void)state;
	load(&run, STUB_RX, false, SUBNETS_SHAPED, none, 1);
	packet_begin(&p);
	packet_ethernet(&p);
	packet_type(&p, 0x0806);
	packet_payload(&p, 28);
	packet_end(&p);
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.counter, NATRA_COUNT_OTHER);
	th_close(&run);
}

/* Checks that nothing in the state but the counters has changed. */
static void assert_untouched(struct progrun *run)
{
	size_t len;
	cleanup_free struct natra_state *state = th_read_state(run, &len);
	const unsigned char *value = (const unsigned char *)state;

	for (size_t i = 0; i < len; i++) {
		if (i >= offsetof(struct natra_state, stripes) &&
		    i < offsetof(struct natra_state, sketch))
			continue;
		if (value[i])
			fail_msg("byte %zu of the state was written", i);
	}
}

static void exempt_packets_are_neither_classified_nor_charged(void **state)
{
	static const char *const peer[] = {FROM4};
	struct progrun run;

	(void)state;
	load(&run, STUB_RX, false, SUBNETS_UNSHAPED, peer, 1);
	for (int i = 0; i < 300; i++)
		assert_false(is_limited(&run, &kinds[0]));
	assert_untouched(&run);
	th_close(&run);
}

/* The bucket is in debt for an hour, so a packet that is limited would be
 * dropped. */
static void exempt_packets_get_no_departure_time(void **state)
{
	static const char *const peer[] = {TO4};
	struct th_result result;
	struct progrun run;
	struct packet p;

	(void)state;
	load(&run, STUB_EDT, true, SUBNETS_UNSHAPED, peer, 1);
	th_set_tat(&run, th_now() + 3600 * TH_SECOND);
	tcp4(&p);
	packet_end(&p);
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.counter, NATRA_COUNT_UNLIMITED);
	assert_int_equal(result.verdict, TC_ACT_UNSPEC);
	assert_int_equal(result.tstamp, 0);
	tcp6(&p);
	packet_end(&p);
	th_send(&run, &p, NULL, &result);
	assert_int_equal(result.counter, NATRA_COUNT_DROPPED_HORIZON);
	th_close(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(peer_decides_and_not_the_pod),
		cmocka_unit_test(what_hides_its_addresses_is_limited),
		cmocka_unit_test(what_is_not_ip_stays_other),
		cmocka_unit_test(
			exempt_packets_are_neither_classified_nor_charged),
		cmocka_unit_test(exempt_packets_get_no_departure_time),
	};

	th_require_bpf();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
