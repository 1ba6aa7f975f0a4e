/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check that an edit of classes forgives nothing of what they owe. At 1 bit/s a packet
 * takes minutes: the first one leaves a debt of more than 100 s, and none goes before all but the bound of
 * an overdraft, 13 s, of that has passed. The burst is of less time than the machine has been up, which is
 * all that a flow can have saved: else the debt depends on that. */
#include <time.h>

#include "one_pod.h"

#define RATE  1
#define BURST 8

static const char *const peer[] = {"10.78.0.0/16"};
static const char *const others[] = {"192.0.2.0/24"};
static const char *const nobody[] = {"198.51.100.0/24"};

static struct natra_class make(const char *name, const char *const *subnets)
{
	return (struct natra_class){
		.sz = sizeof(struct natra_class),
		.name = name,
		.subnets = subnets,
		.subnets_len = 1,
		.ingress_rate_bits_per_sec = RATE,
		.egress_rate_bits_per_sec = RATE,
	};
}

static struct natra_class list[2];

/* Waits for longer than a packet at these rates is delayed, if nothing is owed. */
static void wait_a_moment(void)
{
	const struct timespec pause = {.tv_nsec = 300000000};

	(void)nanosleep(&pause, NULL);
}

/* Returns how many of 40 packets pass in a class; NULL stands for the rest. */
static uint64_t pass(const char *name)
{
	struct natra_stats before = NATRA_INIT(before), after = before;

	for (int i = 0; i < 2; i++) {
		struct natra_stats *stats = i ? &after : &before;

		assert_int_equal(name ? natra_class_stats(n, ID, name, stats)
				      : natra_stats(n, ID, stats),
				 0);
		if (!i)
			pod_send(&pod, 40);
	}
	assert_int_equal(after.ingress.admitted.packets +
				 after.ingress.dropped_rate.packets -
				 before.ingress.admitted.packets -
				 before.ingress.dropped_rate.packets,
			 40);
	return after.ingress.admitted.packets - before.ingress.admitted.packets;
}

/* Attaches with two classes, of which one has the peer and owes for what it sent. */
static struct natra_policy owing(void)
{
	struct natra_policy policy = NATRA_INIT(policy);

	policy.ingress_rate_bits_per_sec = RATE;
	policy.egress_rate_bits_per_sec = RATE;
	policy.ingress_burst_bits = BURST;
	policy.fast_pass = NATRA_FAST_PASS_OFF;
	list[0] = make("near", peer);
	list[1] = make("far", others);
	policy.classes = list;
	policy.classes_len = 2;
	assert_int_equal(attach_pod(&policy), 0);
	assert_in_range(pass("near"), 1, 39);
	assert_int_equal(pass("near"), 0);
	return policy;
}

TH_TEST(another_name_owes_as_much)
{
	struct natra_policy policy = owing();

	list[0].name = "nearer";
	assert_int_equal(attach_pod(&policy), 0);
	wait_a_moment();
	assert_int_equal(pass("nearer"), 0);
}

TH_TEST(another_order_swaps_no_debts)
{
	struct natra_policy policy = owing();

	list[0] = make("far", others);
	list[1] = make("near", peer);
	assert_int_equal(attach_pod(&policy), 0);
	assert_int_equal(pass("near"), 0);
	/* The other one owes nothing, as before. */
	list[0].subnets = peer;
	list[1].subnets = others;
	assert_int_equal(attach_pod(&policy), 0);
	assert_in_range(pass("far"), 1, 39);
}

/* The peers of a class that goes are the rest's. */
TH_TEST(the_rest_owes_for_one_that_goes)
{
	struct natra_policy policy = owing();

	list[0] = list[1];
	policy.classes_len = 1;
	assert_int_equal(attach_pod(&policy), 0);
	wait_a_moment();
	assert_int_equal(pass(NULL), 0);
}

/* Rates go from one class to another without an attach. */
TH_TEST(one_that_gets_faster_owes_what_others_do)
{
	struct natra_policy policy = owing();
	const uint32_t before = rig_query(n, ID).ingress_prog_id;

	list[0].subnets = others;
	list[1].subnets = peer;
	list[1].ingress_rate_bits_per_sec++;
	OK(natra_configure(n, ID, &policy));
	wait_a_moment();
	assert_int_equal(pass("far"), 0);
	assert_int_equal(rig_query(n, ID).ingress_prog_id, before);
}

/* A fast class does not pay for minutes when a slow one owes a packet, neither when it gets faster nor
 * when the slow one goes. */
TH_TEST(one_packet_of_a_slow_class_stops_no_other)
{
	for (size_t i = 0; i < 2; i++) {
		struct natra_policy policy = owing();
		uint64_t passed = 0;

		policy.ingress_rate_bits_per_sec = 10000000;
		policy.ingress_burst_bits = 0;
		OK(natra_configure(n, ID, &policy));
		list[0].subnets = nobody;
		policy.ingress_rate_bits_per_sec *= 2;
		if (i) {
			list[0] = list[1];
			policy.classes_len = 1;
			assert_int_equal(attach_pod(&policy), 0);
		} else {
			OK(natra_configure(n, ID, &policy));
		}
		for (int tries = 0; tries < 16 && passed < 40; tries++) {
			wait_a_moment();
			passed = pass(NULL);
		}
		assert_int_equal(passed, 40);
		rig_detach(n, ID);
	}
}

POD_MAIN()
