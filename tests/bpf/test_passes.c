/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check which flows are heavy, and what the fast passes do with
 * the others. */
#include "cm.h"

#include <string.h>
#include <time.h>

#include "natra_classify.h"
#include "natra_sketch.h"
#include "progrun.h"

#define WINDOW (1ULL << NATRA_WINDOW_SHIFT)
/* A 1514-byte packet has this many units; five of them reach the threshold of
 * th_limits(). */
#define UNITS  24

static struct progrun run;
static struct natra_limits limits;

static int load(void **state)
{
	limits = th_limits();
	limits.pass = NATRA_PASS_FREE;
	limits.rate = policy_rate(8000000, 2000000);
	limits.reserve_ns = TH_SECOND / 4;
	run = th_load_kind(STUB_RX, &limits);
	return 0;
}

TH_STEP(unload, th_close(&run))

static enum natra_counter send(uint16_t port, size_t len)
{
	struct th_result r;
	struct packet p;

	packet_make_tcp4(&p, port, 0, len);
	th_send(&run, &p, NULL, &r);
	return r.counter;
}

/* Waits for the beginning of a window, so that no estimate is halved during
 * the test. */
static void wait_for_window(void)
{
	uint64_t into = th_now() % WINDOW;
	struct timespec t = {0};

	if (into > 20 * TH_MS && into < WINDOW / 8)
		return;
	t.tv_nsec = (long)((WINDOW - into) % WINDOW + 30 * TH_MS);
	if (t.tv_nsec >= (long)TH_SECOND) {
		t.tv_sec = 1;
		t.tv_nsec -= (long)TH_SECOND;
	}
	assert_int_equal(nanosleep(&t, NULL), 0);
}

TH_TEST(free_mice_are_not_charged)
{
	for (uint16_t port = 1; port <= 200; port++)
		assert_int_equal(send(port, 1514), NATRA_COUNT_MICE);
	assert_int_equal(th_tat(&run), 0);
	assert_int_equal(th_mice_tat(&run), 0);
}

TH_TEST(free_mice_pass_beside_an_elephant_in_debt)
{
	uint64_t tat = th_now() + 3600 * TH_SECOND;

	th_set_tat(&run, tat);
	for (uint16_t port = 1; port <= 200; port++)
		assert_int_equal(send(port, 1514), NATRA_COUNT_MICE);
	assert_int_equal(th_tat(&run), tat);
}

TH_TEST(flow_is_heavy_from_the_threshold_on)
{
	wait_for_window();
	for (int i = 1; i <= 4; i++)
		assert_int_equal(send(7, 1514), NATRA_COUNT_MICE);
	assert_true(5 * UNITS >= limits.enter_units);
	assert_int_equal(send(7, 1514), NATRA_COUNT_ADMITTED);
	assert_int_equal(send(8, 1514), NATRA_COUNT_MICE);
	assert_true(th_tat(&run) > 0);
}

TH_TEST(packet_larger_than_the_threshold_is_heavy_at_once)
{
	limits.enter_units = 20;
	limits.leave_units = 2;
	th_set_limits(&run, &limits);
	assert_int_equal(send(7, 1514), NATRA_COUNT_ADMITTED);
}

static void make_heavy(uint16_t port)
{
	for (int i = 0; i < 4; i++)
		(void)send(port, 1514);
	assert_int_equal(send(port, 1514), NATRA_COUNT_ADMITTED);
}

TH_TEST(heavy_flow_stays_heavy_for_the_hold)
{
	wait_for_window();
	make_heavy(7);
	/* This is the state after some windows: nothing is left of the
	 * estimate. */
	th_clear_sketch(&run);
	th_age_heavy(&run, NATRA_HOLD_WINDOWS);
	for (unsigned int i = 1; i < limits.leave_units; i++) {
		assert_int_equal(send(8, 66), NATRA_COUNT_MICE);
		assert_int_equal(send(7, 66), NATRA_COUNT_ADMITTED);
	}
	th_age_heavy(&run, 1);
	th_clear_sketch(&run);
	for (unsigned int i = 1; i < limits.leave_units; i++)
		assert_int_equal(send(7, 66), NATRA_COUNT_MICE);
	assert_int_equal(send(7, 66), NATRA_COUNT_ADMITTED);
}

TH_TEST(hold_begins_again_over_an_eighth)
{
	wait_for_window();
	make_heavy(7);
	th_clear_sketch(&run);
	th_age_heavy(&run, NATRA_HOLD_WINDOWS);
	assert_true(UNITS >= limits.leave_units);
	assert_int_equal(send(7, 1514), NATRA_COUNT_ADMITTED);
	th_age_heavy(&run, NATRA_HOLD_WINDOWS);
	assert_int_equal(send(7, 1514), NATRA_COUNT_ADMITTED);
}

TH_TEST(estimate_halves_in_the_kernel_as_well)
{
	const struct timespec two_windows = {
		.tv_sec = 2, .tv_nsec = (long)(2 * WINDOW - 2 * TH_SECOND)};

	wait_for_window();
	for (int i = 0; i < 4; i++)
		assert_int_equal(send(7, 1514), NATRA_COUNT_MICE);
	assert_int_equal(nanosleep(&two_windows, NULL), 0);
	/* The 96 units have decayed to 24, so three more packets fit under the
	 * threshold of 100. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(send(7, 1514), NATRA_COUNT_MICE);
	assert_int_equal(send(7, 1514), NATRA_COUNT_ADMITTED);
}

TH_TEST(off_treats_every_flow_as_heavy)
{
	limits.pass = NATRA_PASS_OFF;
	th_set_limits(&run, &limits);
	for (uint16_t port = 1; port <= 20; port++)
		assert_int_equal(send(port, 66), NATRA_COUNT_ADMITTED);
	th_set_tat(&run, th_now() + 3600 * TH_SECOND);
	assert_int_equal(send(1, 66), NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(send(99, 66), NATRA_COUNT_DROPPED_RATE);
}

static void use_strict(void)
{
	limits.pass = NATRA_PASS_STRICT;
	limits.mice = policy_rate(4000000, 1); /* 2000 ns a byte */
	limits.mice_mult = limits.rate.mult;
	th_set_limits(&run, &limits);
}

TH_TEST(strict_mice_over_their_share_get_what_is_left)
{
	uint64_t mice_tat = th_now() + 3600 * TH_SECOND;

	wait_for_window();
	limits.reserve_ns = TH_SECOND;
	use_strict();
	th_set_mice_tat(&run, mice_tat);
	/* Most of the burst, which is 2 s of the rate, is still there, so a
	 * mouse over its share passes. */
	th_set_tat(&run, th_now() - 1800 * TH_MS);
	make_heavy(7);
	assert_int_equal(send(1, 1000), NATRA_COUNT_MICE);
	/* The rest of the burst is kept for elephants, so a mouse over its
	 * share is dropped. */
	th_set_tat(&run, th_now() - 200 * TH_MS);
	assert_int_equal(send(2, 1000), NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(send(7, 1000), NATRA_COUNT_ADMITTED);
	th_set_tat(&run, th_now() + 3600 * TH_SECOND);
	assert_int_equal(send(3, 1000), NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(th_mice_tat(&run), mice_tat);
}

TH_TEST(strict_mice_get_their_share_and_no_more)
{
	uint64_t begin = th_now(), passed = 0, most;

	use_strict();
	/* The elephants have used up all of the rate already. */
	th_set_tat(&run, th_now() + 3600 * TH_SECOND);
	for (int i = 0; i < 2000; i++)
		passed += send((uint16_t)i, 500) == NATRA_COUNT_MICE;
	most = (th_now() - begin) / 1000000 + 2;
	assert_in_range(passed, 1, most);
}

/* Sends what a link depends on: ARP, LACP, IEEE 802.1X, LLDP, STP, and a neighbour
 * solicitation, from one of many senders. */
static enum natra_counter send_for_link(unsigned int n, unsigned int sender)
{
	static const char *const layers[] = {
		"type:0x0806 pay:46", "type:0x8809 pay:46",
		"type:0x888e pay:46", "type:0x88cc pay:46",
		"type:38 pay:46",     "ip6:h255 echo:58:135"};
	struct packet p = packet_of("eth %s", layers[n % 6]);
	struct th_result result;

	p.data[11] = (uint8_t)sender;
	th_send(&run, &p, NULL, &result);
	return result.counter;
}

/* It passes uncharged, whether the rate is so low that the first packet is over the
 * threshold, or so high that no flow is: 64 short packets at once, and as many in a
 * second, of all kinds together. */
TH_TEST(what_the_link_depends_on_has_one_allowance)
{
	static const uint32_t passes[] = {NATRA_PASS_FREE, NATRA_PASS_STRICT,
					  NATRA_PASS_OFF};

	for (unsigned int i = 0; i < 2 * TH_LEN(passes); i++) {
		struct natra_counters c;
		uint64_t begin;

		(void)unload(state);
		(void)load(state);
		limits.pass = passes[i / 2];
		limits.enter_units = i % 2 ? 1 : 1000000;
		limits.leave_units = limits.enter_units;
		th_set_limits(&run, &limits);
		th_set_tat(&run, th_now() + 3600 * TH_SECOND);
		th_set_mice_tat(&run, th_now() + 3600 * TH_SECOND);
		begin = th_now();
		for (unsigned int n = 0; n < 600; n++)
			(void)send_for_link(n, n % 200);
		th_counters(&run, &c);
		assert_in_range(c.count[NATRA_COUNT_OTHER].packets, 64,
				66 + (th_now() - begin) / (TH_SECOND / 64));
	}
}

/* Into a pod come the broadcasts of its neighbours: one that floods has a quarter of the
 * allowance, once, and those who send little have the rest. */
TH_TEST(who_floods_the_link_has_a_part_of_its_allowance)
{
	unsigned int passed = 0;

	limits.pass = NATRA_PASS_OFF;
	th_set_limits(&run, &limits);
	th_set_tat(&run, th_now() + 3600 * TH_SECOND);
	wait_for_window();
	for (unsigned int n = 0; n < 200; n++)
		passed += send_for_link(0, 1) == NATRA_COUNT_OTHER;
	assert_int_equal(passed, 16);
	for (unsigned int n = 0; n < 40; n++) {
		assert_int_equal(send_for_link(n, 2 + n % 20),
				 NATRA_COUNT_OTHER);
		assert_int_equal(send_for_link(n, 1), NATRA_COUNT_DROPPED_RATE);
	}
}

TH_BPF_MAIN(load, unload)
