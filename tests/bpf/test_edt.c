/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check how packets get departure times where fq can hold them. */
#include "cm.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "progrun.h"
#include "natra_fair.h"
#include "util/cleanup.h"

#define MONO 1
#define TAI  2 /* since Linux 6.11; before it the prelude leaves it unset */
#define ECT1 1
#define ECT0 2
#define CE   3

static struct progrun run;
static struct natra_limits limits;

static void load_way(bool out_of_pod)
{
	const struct program_options options = {
		.kind = STUB_EDT,
		.has_l2 = true,
	};
	const struct th_peers peers = {.is_to = out_of_pod};

	limits = th_limits();
	th_load_peers(&run, &options, &peers, &limits);
}

static int load(void **state)
{
	load_way(true);
	return 0;
}

static int load_with_prelude(void **state)
{
	load(state);
	th_use_prelude(&run);
	return 0;
}

/* The host side of a veth, where fq holds what goes into the pod. */
static int load_into_pod(void **state)
{
	load_way(false);
	th_use_prelude(&run);
	return 0;
}

TH_STEP(unload, th_close(&run))

static void send(const struct packet *p, uint64_t stamp, uint32_t type,
		 struct th_result *ret)
{
	const struct th_context context = {.tstamp = stamp,
					   .tstamp_type = type};

	th_send(&run, p, &context, ret);
}

static void send_tcp(uint64_t stamp, uint32_t type, struct th_result *ret)
{
	struct packet p;

	packet_make_tcp4(&p, 1000, 0, 1500);
	send(&p, stamp, type, ret);
}

TH_TEST(packet_within_the_rate_has_no_departure_time)
{
	struct th_result r;

	send_tcp(0, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(r.verdict, TC_ACT_UNSPEC);
	assert_int_equal(r.tstamp, 0);
	assert_int_equal(r.delay_ns, 0);
}

TH_TEST(departure_is_what_the_bucket_says)
{
	uint64_t tat = th_now() + TH_SECOND;
	struct th_result r;

	th_set_tat(&run, tat);
	for (unsigned int i = 0; i < 10; i++) {
		send_tcp(0, 0, &r);
		assert_int_equal(r.counter, NATRA_COUNT_PACED);
		assert_int_equal(r.tstamp, tat + i * 1500 * TH_NS_PER_BYTE);
		assert_in_range(r.delay_ns, r.tstamp - r.after_ns,
				r.tstamp - r.before_ns);
	}
	assert_int_equal(th_tat(&run), tat + 10 * 1500 * TH_NS_PER_BYTE);
}

/* A flow that has not used its share does not wait in the queue of the others,
 * and is charged. What it overdraws is bounded. */
TH_TEST(flow_under_its_share_does_not_wait)
{
	const uint64_t bound = 6ULL << limits.fair_shift;
	uint64_t tat = th_now() + TH_SECOND;
	struct th_result r;

	th_set_queue(&run, tat);
	send_tcp(0, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(r.tstamp, 0);
	assert_int_equal(th_tat(&run), tat + 1500 * TH_NS_PER_BYTE);
	/* The same queue, without a packet in it that has a turn. */
	th_set_queue(&run, 0);
	th_set_tat(&run, tat);
	th_clear_clocks(&run);
	send_tcp(0, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat - bound);
}

TH_TEST(beyond_the_horizon_is_dropped_and_not_charged)
{
	uint64_t tat = th_now() + 30 * TH_SECOND;
	struct th_result r;

	th_set_tat(&run, tat);
	send_tcp(0, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_DROPPED_HORIZON);
	assert_int_equal(r.verdict, TC_ACT_SHOT);
	assert_int_equal(r.bytes, 1500);
	assert_int_equal(r.delay_ns, 0);
	assert_int_equal(th_tat(&run), tat);
}

TH_TEST_AFTER(later_stamp_of_the_sender_is_kept, load_with_prelude)
{
	uint64_t tat = th_now() + 3 * TH_SECOND / 2, own = tat + 10 * TH_MS;
	struct th_result r;

	th_set_tat(&run, tat);
	send_tcp(own, MONO, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, own);
	/* The packet is charged all the same. */
	assert_int_equal(th_tat(&run), tat + 1500 * TH_NS_PER_BYTE);
}

TH_TEST_AFTER(earlier_stamp_of_the_sender_is_put_off, load_with_prelude)
{
	uint64_t tat = th_now() + 3 * TH_SECOND / 2;
	struct th_result r;

	th_set_tat(&run, tat);
	send_tcp(tat - 10 * TH_MS, MONO, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat);
	assert_true(r.delay_ns > 0);
}

TH_TEST_AFTER(own_stamp_within_the_rate_is_kept, load_with_prelude)
{
	uint64_t own = th_now() + 5 * TH_SECOND;
	struct th_result r;

	send_tcp(own, MONO, &r);
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(r.tstamp, own);
}

TH_TEST_AFTER(own_stamp_beyond_the_horizon_is_replaced, load_with_prelude)
{
	uint64_t now = th_now(), tat = now + 3 * TH_SECOND / 2;
	struct th_result r;

	th_set_tat(&run, tat);
	send_tcp(now + 20 * TH_SECOND, MONO, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat);
	th_set_tat(&run, tat);
	send_tcp(UINT64_MAX, MONO, &r);
	assert_int_equal(r.tstamp, tat);
}

TH_TEST_AFTER(own_stamp_that_fq_would_drop_is_cleared, load_with_prelude)
{
	struct th_result r;

	send_tcp(th_now() + 20 * TH_SECOND, MONO, &r);
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(r.tstamp, 0);
}

/* fq drops packets that are due in 10 s or later. natra stops 1 s earlier
 * because fq's clock may be ahead. */
TH_TEST_AFTER(own_stamp_is_kept_up_to_nine_seconds, load_with_prelude)
{
	uint64_t now = th_now(), tat = now + 3 * TH_SECOND / 2;
	uint64_t near = now + 8500 * TH_MS;
	struct th_result r;

	th_set_tat(&run, tat);
	send_tcp(near, MONO, &r);
	assert_int_equal(r.tstamp, near);
	th_set_tat(&run, tat);
	send_tcp(th_now() + 9500 * TH_MS, MONO, &r);
	assert_int_equal(r.tstamp, tat);
}

/* Returns whether the type of a stamp can be TAI. */
static bool has_tai(void)
{
	struct utsname name;
	long major, minor;
	char *end;

	assert_int_equal(uname(&name), 0);
	major = strtol(name.release, &end, 10);
	assert_int_equal(*end, '.');
	minor = strtol(end + 1, NULL, 10);
	return major > 6 || (major == 6 && minor >= 11);
}

TH_TEST_AFTER(stamp_of_another_clock_is_no_departure_time, load_with_prelude)
{
	const uint64_t in_2023 = 1700000000 * TH_SECOND;
	uint64_t tat = th_now() + 3 * TH_SECOND / 2;
	struct th_result r;

	for (uint32_t type = 0; type <= TAI; type += TAI) {
		th_set_tat(&run, 0);
		send_tcp(in_2023, type, &r);
		assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
		assert_int_equal(r.tstamp, 0);
		th_set_tat(&run, tat);
		send_tcp(in_2023, type, &r);
		assert_int_equal(r.counter, NATRA_COUNT_PACED);
		assert_int_equal(r.tstamp, tat);
	}
	/* A stamp of another clock may look like a time in the near future. */
	if (!has_tai())
		return;
	th_set_tat(&run, tat);
	send_tcp(tat + 1, TAI, &r);
	assert_int_equal(r.tstamp, tat);
}

/* Before Linux 6.11 that of SO_TXTIME has none. */
TH_TEST_AFTER(own_stamp_without_a_type_is_kept, load_with_prelude)
{
	uint64_t tat = th_now() + 3 * TH_SECOND / 2, own = tat + 10 * TH_MS;
	struct th_result r;

	th_set_tat(&run, tat);
	send_tcp(own, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, own);
}

TH_TEST(foreign_stamp_is_cleared_from_what_is_not_limited)
{
	const uint64_t in_2023 = 1700000000 * TH_SECOND;
	struct th_result r;
	struct packet p;

	limits.rate.mult = 0;
	th_set_limits(&run, &limits);
	send_tcp(in_2023, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_UNLIMITED);
	assert_int_equal(r.tstamp, 0);
	p = packet_of("eth type:0x0806 pay:28");
	send(&p, in_2023, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_UNLIMITED);
	assert_int_equal(r.tstamp, 0);
}

/* 7 is TC_PRIO_CONTROL. Only the lowest four bits of the priority are the
 * kernel's own. */
TH_TEST(paced_packet_does_not_keep_the_highest_priority)
{
	static const struct {
		uint32_t priority, paced;
	} cases[] = {
		{0, 0}, {6, 6}, {7, 6}, {8, 8}, {15, 15}, {0x10007, 0x10006},
	};
	struct th_result r;
	struct packet p;

	packet_make_tcp4(&p, 1000, 0, 1500);
	for (size_t i = 0; i < TH_LEN(cases); i++) {
		const struct th_context context = {
			.priority = cases[i].priority,
		};

		th_set_tat(&run, 0);
		th_send(&run, &p, &context, &r);
		assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
		assert_int_equal(r.priority, cases[i].priority);
		th_set_tat(&run, th_now() + TH_SECOND);
		th_send(&run, &p, &context, &r);
		assert_int_equal(r.counter, NATRA_COUNT_PACED);
		assert_int_equal(r.priority, cases[i].paced);
	}
}

/* Sends a packet that is to wait for so long. */
static void send_late(uint8_t tos, uint64_t delay_ns, struct th_result *ret)
{
	struct packet p;

	packet_make_tcp4(&p, 1000, tos, 1500);
	th_set_tat(&run, th_now() + delay_ns);
	send(&p, 0, 0, ret);
}

/* From 67 ms over the target on each packet is marked. */
TH_TEST(delay_over_the_target_is_marked)
{
	struct th_result r;

	limits.max_delay_ns = 8 * TH_SECOND;
	limits.target_ns = TH_SECOND;
	th_set_limits(&run, &limits);
	send_late(ECT0, TH_SECOND / 2, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.data[15] & CE, ECT0);
	send_late(ECT0, 2 * TH_SECOND, &r);
	assert_int_equal(r.counter, NATRA_COUNT_MARKED);
	assert_int_equal(r.verdict, TC_ACT_UNSPEC);
	assert_int_equal(r.tstamp, th_tat(&run) - 1500 * TH_NS_PER_BYTE);
	assert_int_equal(r.data[15] & CE, CE);
	assert_true(packet_checksum_good(r.data + 14));
	send_late(CE, 2 * TH_SECOND, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	/* Those that answer each mark a little have it earlier: from a fourth on. */
	send_late(ECT1, TH_SECOND / 5, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	send_late(ECT1, TH_SECOND * 3 / 5, &r);
	assert_int_equal(r.counter, NATRA_COUNT_MARKED);
}

/* Sets K, which no later packet adapts. */
static void set_k(uint32_t k)
{
	struct natra_state s = th_read_state(&run);

	s.fair.k_more = (k - 1) << NATRA_FAIR_K_SHIFT;
	s.fair.tick = UINT64_MAX;
	th_write_state(&run, &s);
}

/* Two packets at the flow's share are no queue: 0.6 s, and 0.3 s for one. */
TH_TEST(target_follows_the_share)
{
	struct th_result r;

	limits.max_delay_ns = 8 * TH_SECOND;
	limits.target_ns = TH_MS;
	th_set_limits(&run, &limits);
	set_k(200);
	send_late(ECT0, TH_SECOND / 2, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	send_late(ECT1, TH_SECOND / 4, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	send_late(ECT1, 2 * TH_SECOND / 3, &r);
	assert_int_equal(r.counter, NATRA_COUNT_MARKED);
	send_late(ECT0, TH_SECOND, &r);
	assert_int_equal(r.counter, NATRA_COUNT_MARKED);
}

/* The socket of these packets is none of TCP's. Its buffer stops a sender that goes on. */
TH_TEST(local_datagrams_are_spared)
{
	int dropped = 0;
	struct th_result r;

	limits.max_delay_ns = 8 * TH_SECOND;
	limits.target_ns = TH_MS;
	th_set_limits(&run, &limits);
	for (int i = 0; i < 3200; i++) {
		send_late(0, TH_SECOND, &r);
		dropped += r.counter == NATRA_COUNT_DROPPED_RATE;
		if (r.counter != NATRA_COUNT_DROPPED_RATE)
			assert_int_equal(r.counter, NATRA_COUNT_PACED);
	}
	/* 100 of them, with a standard deviation of 10. */
	assert_in_range(dropped, 50, 150);
}

static void send_without_socket_of(size_t len, uint64_t stamp, uint32_t type,
				   uint8_t tos, struct th_result *ret)
{
	const struct th_context context = {
		.pop_vlan = true, .tstamp = stamp, .tstamp_type = type};
	/* The tag is taken off before. */
	const struct packet p =
		packet_of("eth vlan ip4:t%u tcp pad:%zu", tos, len + 4);

	th_send(&run, &p, &context, ret);
}

static void send_without_socket(uint64_t stamp, uint8_t tos,
				struct th_result *ret)
{
	send_without_socket_of(1500, stamp, 0, tos, ret);
}

/* Sends a packet whose own stamp is behind its turn. */
static void turn_replaces_stamp(uint64_t tat, uint32_t type)
{
	struct th_result r;

	th_set_tat(&run, tat);
	send_without_socket_of(1500, tat + TH_SECOND, type, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat);
}

/* Its sender is a neighbour, whose packets would stand in the fq of all that goes into the pod. */
TH_TEST_AFTER(stamp_of_what_goes_into_the_pod_is_replaced, load_into_pod)
{
	struct th_result r;
	uint64_t tat;

	limits.unfelt_delay_ns = limits.max_delay_ns = 8 * TH_SECOND;
	th_set_limits(&run, &limits);
	for (uint32_t type = 0; type <= MONO; type++) {
		tat = th_now() + 3 * TH_SECOND / 2;
		th_set_tat(&run, 0);
		send_tcp(tat, type, &r);
		assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
		assert_int_equal(r.tstamp, 0);
		turn_replaces_stamp(tat, type);
	}
}

/* The socket is no TCP's, so others may be waiting for it. */
TH_TEST_AFTER(datagram_of_a_neighbour_is_not_held, load_into_pod)
{
	struct th_result r;

	th_set_tat(&run, th_now() + TH_SECOND);
	send_tcp(0, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(r.verdict, TC_ACT_SHOT);
}

/* fq would take it for a departure time. */
TH_TEST_AFTER(time_of_reception_is_cleared_or_replaced, load_with_prelude)
{
	uint64_t tat = th_now() + 3 * TH_SECOND / 2;
	struct th_result r;

	limits.unfelt_delay_ns = limits.max_delay_ns = 8 * TH_SECOND;
	th_set_limits(&run, &limits);
	send_without_socket(th_now() + TH_SECOND, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(r.tstamp, 0);
	th_set_tat(&run, tat);
	send_without_socket(tat + 1, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat);
}

/* Its socket was in another network namespace, and does not stop its sender. */
TH_TEST_AFTER(departure_of_what_is_forwarded_is_replaced, load_with_prelude)
{
	uint64_t tat = th_now() + 3 * TH_SECOND / 2;
	struct th_result r;

	limits.unfelt_delay_ns = limits.max_delay_ns = 8 * TH_SECOND;
	th_set_limits(&run, &limits);
	send_without_socket_of(1500, tat, MONO, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(r.tstamp, 0);
	turn_replaces_stamp(tat, MONO);
}

/* The delay puts no backpressure on its sender. */
TH_TEST_AFTER(packet_without_a_socket_has_a_shorter_horizon, load_with_prelude)
{
	uint64_t tat = th_now() + 2 * TH_SECOND;
	struct th_result r;

	limits.unfelt_delay_ns = 4 * TH_SECOND;
	limits.max_delay_ns = 8 * TH_SECOND;
	th_set_limits(&run, &limits);
	th_set_tat(&run, tat);
	send_without_socket(0, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat);
	tat = th_now() + 6 * TH_SECOND;
	th_set_tat(&run, tat);
	send_without_socket(0, ECT0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_DROPPED_HORIZON);
	assert_int_equal(th_tat(&run), tat);
	send_tcp(0, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat);
}

TH_TEST_AFTER(packet_without_a_socket_over_the_target_is_dropped,
	      load_with_prelude)
{
	struct th_result r;

	limits.unfelt_delay_ns = limits.max_delay_ns = 8 * TH_SECOND;
	limits.target_ns = TH_SECOND;
	th_set_limits(&run, &limits);
	th_set_tat(&run, th_now() + 2 * TH_SECOND);
	send_without_socket(0, ECT0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_MARKED);
	assert_int_equal(r.data[15] & CE, CE);
	assert_true(packet_checksum_good(r.data + 14));
	th_set_tat(&run, th_now() + 2 * TH_SECOND);
	send_without_socket(0, 0, &r);
	assert_int_equal(r.counter, NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(r.verdict, TC_ACT_SHOT);
}

/* The header is cut, so no mark can be written. What is lost by that is as little as of others. */
TH_TEST_AFTER(l4s_packet_that_cannot_be_marked_is_spared, load_with_prelude)
{
	const struct th_context context = {.pop_vlan = true};
	const struct packet p =
		packet_of("eth vlan type:0x0800 hex:4501 pay:8");
	int dropped = 0;
	struct th_result r;

	limits.unfelt_delay_ns = limits.max_delay_ns = 8 * TH_SECOND;
	limits.target_ns = TH_SECOND;
	th_set_limits(&run, &limits);
	for (int i = 0; i < 100; i++) {
		th_set_tat(&run, th_now() + 2 * TH_SECOND);
		th_send(&run, &p, &context, &r);
		dropped += r.counter == NATRA_COUNT_DROPPED_RATE;
	}
	assert_in_range(dropped, 0, 10);
}

/* At a delay where each long one is dropped, half of 1 kB is by the square of a half. A mark
 * loses nothing, so it does not matter how long the packet is. */
TH_TEST_AFTER(short_packet_without_a_mark_is_spared, load_with_prelude)
{
	int dropped = 0;
	struct th_result r;

	limits.unfelt_delay_ns = limits.max_delay_ns = 8 * TH_SECOND;
	limits.target_ns = TH_SECOND;
	th_set_limits(&run, &limits);
	for (int i = 0; i < 1600; i++) {
		th_set_tat(&run, th_now() + 2 * TH_SECOND);
		send_without_socket_of(512, 0, 0, 0, &r);
		dropped += r.counter == NATRA_COUNT_DROPPED_RATE;
		if (i >= 30)
			continue;
		th_set_tat(&run, th_now() + 2 * TH_SECOND);
		send_without_socket_of(512, 0, 0, ECT0, &r);
		assert_int_equal(r.counter, NATRA_COUNT_MARKED);
	}
	/* 400 of them, with a standard deviation of 17. */
	assert_in_range(dropped, 300, 500);
}

TH_BPF_MAIN(load, unload)
