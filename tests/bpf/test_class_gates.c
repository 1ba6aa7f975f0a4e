/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check that classes of peers have the limits of packets and connections together
 * (natra_gates.bpf.h). */
#include "cm.h"

#include "progrun.h"
#include "state/subnets_map.h"
#include "util/cleanup.h"

#define FAR (3600 * TH_SECOND)
#define SYN 0x02

static struct progrun run;

/* IPv4 is in a class, and IPv6 is the rest. Everything is a mouse. */
static void load(enum stub_kind kind)
{
	static const char *const v4[] = {"0.0.0.0/0"};
	const struct program_options options = {.kind = kind, .has_l2 = true};
	const struct natra_class list = {
		.name = "v4", .subnets = v4, .subnets_len = TH_LEN(v4)};
	struct natra_policy policy = NATRA_INIT(policy);
	cleanup_subnets struct subnets subnets = {0};
	struct natra_limits limits = th_limits();

	policy.classes = &list;
	policy.classes_len = 1;
	limits.pass = NATRA_PASS_FREE;
	limits.enter_units = 10000;
	limits.leave_units = 1250;
	limits.has_gates = 1;
	limits.packets = policy_rate(8ULL * 20, 1);
	limits.connections = policy_rate(8, 1);
	assert_int_equal(subnets_read(&policy, &subnets), 0);
	th_load_peers(&run, &options, &(struct th_peers){.subnets = &subnets},
		      &limits);
}

/* Sends a SYN in a class. Returns what of it is over a limit. */
static enum natra_gate send_in(uint32_t class)
{
	struct natra_counters sum;
	struct th_result result;
	struct packet p;

	if (class)
		packet_make_tcp4(&p, 1, 0, 120);
	else
		packet_make_tcp6(&p, 1, 0, 120);
	p.data[p.l4 + 13] = SYN;
	th_look_at_class(&run, class);
	th_send(&run, &p, NULL, &result);
	th_counters(&run, &sum);
	th_look_at_class(&run, 0);
	if (result.verdict != TC_ACT_SHOT)
		return NATRA_GATE_NONE;
	return sum.over_packets.packets ? NATRA_GATE_PACKETS
					: NATRA_GATE_CONNECTIONS;
}

/* A pod chooses the DSCP, and with it perhaps its class. */
TH_TEST(classes_have_limits_of_packets_together)
{
	for (int kind = 0; kind < STUB_KIND_MAX; kind++) {
		for (uint32_t class = 0; class <= 1; class ++) {
			load((enum stub_kind)kind);
			assert_int_equal(send_in(class), NATRA_GATE_NONE);
			assert_int_not_equal(th_read_state(&run).packets_tat_ns,
					     0);
			th_set_gates(&run, 0, th_now() + FAR);
			assert_int_equal(send_in(class),
					 NATRA_GATE_CONNECTIONS);
			th_set_gates(&run, th_now() + FAR, 0);
			assert_int_equal(send_in(class), NATRA_GATE_PACKETS);
			th_close(&run);
		}
	}
}

static void set_packets(uint32_t class, uint64_t per_second)
{
	struct natra_limits limits = th_limits();

	limits.pass = NATRA_PASS_FREE;
	limits.enter_units = 10000;
	limits.leave_units = 1250;
	limits.has_gates = 1;
	limits.packets = policy_rate(8 * per_second, 1);
	th_look_at_class(&run, class);
	th_set_limits(&run, &limits);
	th_look_at_class(&run, 0);
}

/* What was owed at a packet a second takes less time at another limit, also if a class has had
 * fewer changes than the rest. */
TH_TEST(classes_owe_by_the_limit_of_now)
{
	uint64_t end_ns;

	load(STUB_RX);
	for (int i = 0; i < 5; i++)
		set_packets(0, 1);
	assert_int_equal(send_in(0), NATRA_GATE_NONE);
	th_set_gates(&run, th_now() + 100 * TH_SECOND, 0);
	set_packets(0, 1000000);
	set_packets(1, 1000000);
	end_ns = th_now() + 20 * TH_SECOND;
	while (send_in(1) != NATRA_GATE_NONE)
		assert_true(th_now() < end_ns);
	assert_int_equal(send_in(0), NATRA_GATE_NONE);
	th_close(&run);
}

TH_BPF_MAIN(NULL, NULL)
