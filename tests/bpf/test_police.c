/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check how packets are admitted, marked and dropped where nothing can hold
 * them. */
#include "cm.h"

#include <stdlib.h>
#include <string.h>

#include "natra_fair.h"
#include "progrun.h"

#define NOT_ECT 0
#define ECT1    1
#define ECT0    2
#define CE      3

/* The tests set a debt of half of it, which must last until the packet is sent,
 * however busy the machine is. */
#define LIMIT       (10 * TH_SECOND)
/* 2000 packets must be able to reach it. */
#define FLOOD_LIMIT (100 * TH_MS)
#define COST        (1500 * TH_NS_PER_BYTE)

static struct progrun run;

static void load(enum stub_kind kind)
{
	struct natra_limits limits = th_limits();

	limits.max_overdraft_ns = LIMIT;
	run = th_load_kind(kind, &limits);
}

TH_STEP(load_rx, load(STUB_RX))
TH_STEP(load_tx, load(STUB_TX))
TH_STEP(unload, th_close(&run))

static void send_tcp(uint8_t ecn, struct th_result *ret)
{
	struct packet p;

	packet_make_tcp4(&p, 1000, ecn, 1500);
	th_send(&run, &p, NULL, ret);
}

TH_TEST_AFTER(packet_within_the_rate_is_admitted_and_charged, load_rx, load_tx)
{
	struct th_result r;
	uint64_t tat;

	send_tcp(ECT0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(r.verdict, TC_ACT_UNSPEC);
	assert_int_equal(r.data[15], ECT0);
	tat = th_tat(&run);
	assert_in_range(tat, r.coarse_ns + COST - TH_NS_PER_BYTE,
			r.after_ns + COST - TH_NS_PER_BYTE);
}

TH_TEST_AFTER(over_the_rate_what_is_not_ect_is_dropped, load_rx, load_tx)
{
	uint64_t tat = th_now() + LIMIT / 2;
	struct th_result r;

	th_set_tat(&run, tat);
	send_tcp(NOT_ECT, &r);
	assert_int_equal(r.counter, NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(r.verdict, TC_ACT_SHOT);
	assert_int_equal(r.bytes, 1500);
	assert_int_equal(r.delay_ns, 0);
	/* A packet that does not pass is not charged. */
	assert_int_equal(th_tat(&run), tat);
}

TH_TEST_AFTER(over_the_rate_ect_is_marked_and_charged, load_rx, load_tx)
{
	static const uint8_t codes[] = {ECT0, ECT1, CE};
	struct th_result r;

	for (size_t i = 0; i < TH_LEN(codes); i++) {
		uint64_t tat = th_now() + LIMIT / 2;

		th_set_tat(&run, tat);
		send_tcp(codes[i], &r);
		assert_int_equal(r.counter, NATRA_COUNT_MARKED);
		assert_int_equal(r.verdict, TC_ACT_UNSPEC);
		assert_int_equal(r.data[15], CE);
		assert_true(packet_checksum_good(r.data + 14));
		assert_int_equal(th_tat(&run), tat + COST);
	}
}

/* Returns the latest of the clocks. */
static uint64_t latest_clock(void)
{
	uint64_t latest = 0;
	struct natra_state state = th_read_state(&run);

	for (size_t i = 0; i < TH_LEN(state.clocks); i++) {
		if (state.clocks[i] > latest)
			latest = state.clocks[i];
	}
	return latest;
}

/* They are charged to the bucket alone. */
TH_TEST(first_marks_are_not_on_the_clock)
{
	const uint64_t forgiven = NATRA_FAIR_FORGIVEN_NS / COST;
	const uint64_t tat = th_now() + LIMIT / 2;
	struct th_result r;

	th_set_tat(&run, tat);
	for (uint64_t i = 0; i < 2 * forgiven; i++) {
		send_tcp(ECT0, &r);
		assert_int_equal(r.counter, NATRA_COUNT_MARKED);
		if (i < forgiven)
			assert_int_equal(latest_clock(), tat);
	}
	assert_true(latest_clock() > tat);
	assert_int_equal(th_tat(&run), tat + 2 * forgiven * COST);
}

TH_TEST(mark_changes_nothing_but_the_two_bits)
{
	struct th_result r;
	struct packet p;

	th_set_tat(&run, th_now() + LIMIT / 2);
	packet_make_tcp4(&p, 1000, 0xb8 | ECT0, 1500);
	th_send(&run, &p, NULL, &r);
	assert_int_equal(r.data[15], 0xb8 | CE);
	p.data[15] = 0xb8 | CE;
	packet_end(&p);
	assert_int_equal(r.len, p.len);
	assert_memory_equal(r.data, p.data, p.len);
}

TH_TEST(ipv6_is_marked_too)
{
	struct th_result r;
	struct packet p;

	th_set_tat(&run, th_now() + LIMIT / 2);
	packet_make_tcp6(&p, 1000, ECT0, 1500);
	th_send(&run, &p, NULL, &r);
	assert_int_equal(r.counter, NATRA_COUNT_MARKED);
	packet_make_tcp6(&p, 1000, CE, 1500);
	assert_memory_equal(r.data, p.data, p.len);
}

TH_TEST_AFTER(beyond_the_limit_of_debt_ect_is_dropped, load_rx, load_tx)
{
	uint64_t tat = th_now() + 30 * TH_SECOND;
	struct th_result r;

	th_set_tat(&run, tat);
	send_tcp(ECT0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(r.verdict, TC_ACT_SHOT);
	assert_int_equal(th_tat(&run), tat);
}

/* Apart from the tick of K, the drop path only reads what CPUs share. */
TH_TEST(what_is_dropped_changes_nothing)
{
	struct natra_state before, after;
	struct th_result r;

	th_set_tat(&run, th_now() + 30 * TH_SECOND);
	send_tcp(NOT_ECT, &r);
	before = th_read_state(&run);
	send_tcp(NOT_ECT, &r);
	after = th_read_state(&run);
	assert_int_equal(r.counter, NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(after.fair.tat_ns, before.fair.tat_ns);
	assert_int_equal(after.fair.latest_ns, before.fair.latest_ns);
	assert_memory_equal(after.clocks, before.clocks, sizeof(after.clocks));
}

/* In a frame that began with IP a mark would go where the tag stands here. */
TH_TEST(frame_with_tags_keeps_its_tags)
{
	for (int tags = 1; tags <= 2; tags++) {
		for (unsigned int vid = 0; vid < 4096; vid += 5) {
			struct th_result r;
			struct packet p =
				tags == 1
					? packet_of(
						  "eth svlan:%u ip4:t2 tcp pad:200",
						  vid)
					: packet_of(
						  "eth svlan:%u vlan:%u ip4:t2 tcp pad:200",
						  vid, vid);

			th_set_tat(&run, th_now() + LIMIT / 2);
			th_send(&run, &p, NULL, &r);
			if (r.verdict == TC_ACT_SHOT) {
				assert_int_equal(r.counter,
						 NATRA_COUNT_DROPPED_RATE);
				continue;
			}
			/* A packet that passes over the rate has a mark, and no
			 * other change. */
			assert_int_equal(r.counter, NATRA_COUNT_MARKED);
			if (memcmp(r.data, p.data, p.l3) != 0)
				fail_msg("%d tags, VLAN %u: became %02x%02x",
					 tags, vid, r.data[p.l3 - 4],
					 r.data[p.l3 - 3]);
			p.data[p.l3 + 1] = CE;
			packet_end(&p);
			assert_memory_equal(r.data, p.data, p.len);
		}
	}
}

/* Sends as fast as it can, even if packets are dropped. All that passes must fit into
 * the time since the last tick of the clock before, but for `overdraft` ns and what is
 * forgiven, of which the last packet may be more than is left. */
static void check_flood(uint8_t ecn, uint64_t overdraft)
{
	struct natra_limits limits = th_limits();
	uint64_t passed = 0, begin, elapsed, most;
	struct th_result r;

	limits.max_overdraft_ns = FLOOD_LIMIT;
	th_set_limits(&run, &limits);
	begin = th_coarse_now();
	for (int i = 0; i < 2000; i++) {
		send_tcp(ecn, &r);
		passed += r.verdict == TC_ACT_UNSPEC;
	}
	elapsed = th_now() - begin;
	/* The three packets are the one of debt, the one that the burst rounds up to, and the
	 * last that is forgiven, whose clock is set back by as much as it is ahead. */
	most = (elapsed + (elapsed >> NATRA_FAIR_FORGIVEN_SHIFT) +
		NATRA_FAIR_FORGIVEN_NS + NATRA_FAIR_RELIEF_NS + overdraft) /
		       COST +
	       3;
	assert_in_range(passed, 1, most);
}

TH_TEST(flood_without_ect_stays_within_the_rate)
{
	check_flood(NOT_ECT, 0);
}

TH_TEST(flood_that_ignores_its_marks_stays_within_the_rate)
{
	check_flood(ECT0, FLOOD_LIMIT);
}

/* After a drop the next packet passes, while little was forgiven: each drop costs up to 14
 * ms of the 67 that are forgiven at once. */
TH_TEST(flow_may_go_on_after_a_drop)
{
	struct natra_limits limits = th_limits();
	bool passed, last = true;
	int drops = 0;

	/* A packet takes 12 ms, so that the next one comes sooner on any machine. */
	limits.rate = policy_rate(1000000, 1);
	limits.ramp_mult = UINT64_MAX / limits.rate.burst_ns;
	limits.max_overdraft_ns = LIMIT;
	th_set_limits(&run, &limits);
	for (int i = 0; i < 1000 && drops < 5; i++, last = passed) {
		struct th_result r;

		send_tcp(NOT_ECT, &r);
		passed = r.verdict == TC_ACT_UNSPEC;
		assert_true(passed || last);
		drops += !passed;
	}
	assert_int_equal(drops, 5);
}

TH_TEST(burst_is_passed_at_once)
{
	struct natra_limits limits = th_limits();
	uint64_t begin = th_now(), earned, passed = 0;
	struct th_result r;

	/* A byte takes 10 us, and the burst is 1.5 s. */
	limits.rate = policy_rate(800000, 150000);
	limits.ramp_mult = UINT64_MAX / limits.rate.burst_ns;
	th_set_limits(&run, &limits);
	for (int i = 0; i < 200; i++) {
		send_tcp(NOT_ECT, &r);
		passed += r.verdict == TC_ACT_UNSPEC;
	}
	/* The burst is 100 packets, of which the last ones are dropped by
	 * chance, one more is debt, seven are forgiven, and the elapsed time and a tick of the clock
	 * earn the others. */
	earned = (th_now() - begin) / (15 * TH_MS);
	assert_in_range(passed, 98, 109 + earned);
}

TH_BPF_MAIN(load_rx, unload)
