/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check mice beside packets with departure times, and mice that are
 * charged, over IPv4 and IPv6, where packets are policed and where they are
 * paced. */
#include "cm.h"

#include "progrun.h"

#define CE    3
#define SMALL 500
#define LARGE 1514
#define FAR   (3600 * TH_SECOND)

static struct progrun run;
static struct natra_limits limits;

/* With these limits a large packet is heavy at once, and two small packets of
 * one flow are not. */
static void load(enum stub_kind kind, enum natra_pass pass)
{
	limits = th_limits();
	limits.pass = pass;
	/* A byte takes 1000 ns, and the burst is 1 s. */
	limits.rate = policy_rate(8000000, 1000000);
	limits.mice = policy_rate(4000000, 1);
	limits.mice_mult = limits.rate.mult;
	limits.reserve_ns = TH_SECOND / 4;
	limits.unfelt_delay_ns = TH_SECOND;
	limits.fair_shift = 29; /* a bound of 1.6 s */
	limits.enter_units = 20;
	limits.leave_units = 2;
	run = th_load_kind(kind, &limits);
}

TH_STEP(load_police, load(STUB_RX, NATRA_PASS_STRICT))
TH_STEP(load_edt, load(STUB_EDT, NATRA_PASS_STRICT))
TH_STEP(load_edt_free, load(STUB_EDT, NATRA_PASS_FREE))
TH_STEP(unload, th_close(&run))

/* Packets of ECT(0). Options of IPv4, or a tag, keep one off the parser's fast path. */
#define MAKE4        "eth ip4:t2"
#define MAKE6        "eth ip6:t2"
#define MAKE6_TAGGED "eth vlan ip6:t2"

static const char *const kinds[] = {MAKE4, MAKE6, "eth ip4:o2:t2",
				    MAKE6_TAGGED};

static struct th_result send(const char *kind, size_t port, size_t len)
{
	const struct packet p =
		packet_of("%s tcp:20:%zu pad:%zu", kind, port, len);
	struct th_result r;

	th_send(&run, &p, NULL, &r);
	assert_int_equal(r.bytes, len);
	if (r.verdict != TC_ACT_SHOT && r.counter == NATRA_COUNT_MICE)
		assert_memory_equal(r.data, p.data, p.len);
	return r;
}

/* The packet passes at once, however much is in the bucket, and is neither held
 * nor marked. */
static void is_free_to_go(const struct th_result *r)
{
	assert_int_equal(r->counter, NATRA_COUNT_MICE);
	assert_int_equal(r->verdict, TC_ACT_UNSPEC);
	assert_int_equal(r->tstamp, 0);
	assert_int_equal(r->delay_ns, 0);
}

static void is_paced(const struct th_result *r, uint64_t depart_ns)
{
	assert_int_equal(r->counter, NATRA_COUNT_PACED);
	assert_int_equal(r->verdict, TC_ACT_UNSPEC);
	assert_int_equal(r->tstamp, depart_ns);
	assert_in_range(r->delay_ns, depart_ns - r->after_ns,
			depart_ns - r->before_ns);
}

static void is_dropped(const struct th_result *r, enum natra_counter counter)
{
	assert_int_equal(r->counter, counter);
	assert_int_equal(r->verdict, TC_ACT_SHOT);
	assert_int_equal(r->delay_ns, 0);
}

/* Sends a mouse that neither the share of mice nor the rest has room for. */
static void sends_too_much(uint16_t port, enum natra_counter counter)
{
	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		uint64_t tat = th_now() + FAR, mice = th_now() + FAR;
		struct th_result r;

		th_set_tat(&run, tat);
		th_set_mice_tat(&run, mice);
		r = send(kinds[i], port + i, SMALL);
		is_dropped(&r, counter);
		assert_int_equal(th_tat(&run), tat);
		assert_int_equal(th_mice_tat(&run), mice);
	}
}

/* Mice pass within their share, however far the elephants are in debt. */
TH_TEST_AFTER(mice_are_charged_over_either_protocol, load_police, load_edt)
{
	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		uint64_t tat = th_now() + FAR, from = th_coarse_now(), mice;
		struct th_result r;

		th_set_tat(&run, tat);
		th_set_mice_tat(&run, 0);
		r = send(kinds[i], 100 + i, SMALL);
		is_free_to_go(&r);
		assert_int_equal(th_tat(&run), tat + SMALL * TH_NS_PER_BYTE);
		mice = th_mice_tat(&run);
		/* The mice's burst of one byte is a credit of 2 us. */
		assert_in_range(mice, from + (SMALL - 1) * 2 * TH_NS_PER_BYTE,
				r.after_ns + SMALL * 2 * TH_NS_PER_BYTE);
	}
}

/* Where their share is a ceiling over the rate, a part of what they take of it is charged to
 * all packets, also when they wait for it. What they take of the rest is charged in full. */
TH_TEST_AFTER(a_ceiling_is_charged_in_part, load_police, load_edt)
{
	const uint64_t cost = SMALL * TH_NS_PER_BYTE / 4;
	uint64_t tat = th_now() + FAR, mice = th_now() + 3 * TH_SECOND / 4;
	struct th_result r;

	limits.mice_mult = limits.rate.mult / 4;
	th_set_limits(&run, &limits);
	(void)send(MAKE4, 110, SMALL); /* It settles what the buckets owe. */
	th_set_tat(&run, tat);
	th_set_mice_tat(&run, 0);
	r = send(MAKE4, 111, SMALL);
	is_free_to_go(&r);
	assert_int_equal(th_tat(&run), tat + cost);
	th_set_mice_tat(&run, mice);
	r = send(MAKE4, 112, SMALL);
	if (r.counter == NATRA_COUNT_PACED)
		assert_int_equal(th_tat(&run), tat + 2 * cost);
	else
		is_dropped(&r, NATRA_COUNT_DROPPED_RATE);
	tat = th_now() - TH_SECOND / 2;
	th_set_tat(&run, tat);
	th_set_mice_tat(&run, th_now() + FAR);
	r = send(MAKE4, 113, SMALL);
	is_free_to_go(&r);
	assert_int_equal(th_tat(&run), tat + 4 * cost);
}

TH_TEST_AFTER(mice_over_their_share_are_dropped_beside_elephants, load_police)
{
	sends_too_much(200, NATRA_COUNT_DROPPED_RATE);
}

TH_TEST(mice_that_would_wait_too_long_are_dropped)
{
	sends_too_much(200, NATRA_COUNT_DROPPED_HORIZON);
}

TH_TEST(mice_over_their_share_wait_for_it)
{
	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		uint64_t tat = th_now() + FAR;
		uint64_t mice = th_now() + 3 * TH_SECOND / 4;

		th_set_tat(&run, tat);
		th_set_mice_tat(&run, mice);
		for (uint64_t n = 0; n < 8; n++) {
			const uint64_t cost = SMALL * TH_NS_PER_BYTE;
			struct th_result r =
				send(kinds[i], 800 + 8 * i + n, SMALL);

			/* A byte takes 2000 ns of the share. */
			is_paced(&r, mice + n * 2 * cost);
			assert_int_equal(th_mice_tat(&run),
					 mice + (n + 1) * 2 * cost);
			assert_int_equal(th_tat(&run), tat + (n + 1) * cost);
		}
	}
}

TH_TEST(mice_over_their_share_wait_for_what_elephants_leave)
{
	uint64_t tat = th_now() + TH_SECOND / 2, mice = tat + TH_SECOND / 2;
	struct th_result r;

	th_set_tat(&run, tat);
	th_set_mice_tat(&run, mice);
	r = send(MAKE4, 900, SMALL);
	is_paced(&r, tat + limits.reserve_ns);
	assert_int_equal(th_tat(&run), tat + SMALL * TH_NS_PER_BYTE);
	assert_int_equal(th_mice_tat(&run), mice);
}

TH_TEST(mice_that_wait_for_long_are_marked)
{
	uint64_t mice = th_now() + 3 * TH_SECOND / 4;
	struct th_result r;

	limits.max_delay_ns = TH_SECOND;
	th_set_limits(&run, &limits);
	th_set_tat(&run, th_now() + FAR);
	th_set_mice_tat(&run, mice);
	r = send(MAKE4, 901, SMALL);
	assert_int_equal(r.counter, NATRA_COUNT_MARKED);
	assert_int_equal(r.tstamp, mice);
	assert_int_equal(r.data[15] & CE, CE);
	/* A tag in the frame hides where the mark belongs. */
	r = send(MAKE6_TAGGED, 902, SMALL);
	is_paced(&r, mice + 2 * SMALL * TH_NS_PER_BYTE);
}

/*
 * A sender on this machine stops when its socket's buffer is in fq. The kernel gives
 * each test packet a socket, which is of no address family if the frame has a tag.
 * Mice of local senders may wait for the limit of the others and for the bound of the
 * overdraft, which is .8 s for this unit.
 */
TH_TEST(mice_of_local_senders_may_wait_for_longer)
{
	uint64_t mice = th_now() + 950 * TH_MS;
	struct th_result r;

	limits.fair_shift = 28;
	limits.unfelt_delay_ns = TH_SECOND / 4;
	th_set_limits(&run, &limits);
	th_set_tat(&run, th_now() + FAR);
	th_set_mice_tat(&run, mice);
	r = send(MAKE6_TAGGED, 903, SMALL);
	is_dropped(&r, NATRA_COUNT_DROPPED_HORIZON);
	assert_int_equal(th_mice_tat(&run), mice);
	r = send(MAKE4, 904, SMALL);
	is_paced(&r, mice);
	r = send(MAKE6, 905, SMALL);
	is_paced(&r, mice + 2 * SMALL * TH_NS_PER_BYTE);
	th_set_mice_tat(&run, th_now() + 1900 * TH_MS);
	r = send(MAKE4, 906, SMALL);
	is_dropped(&r, NATRA_COUNT_DROPPED_HORIZON);
}

/* Acknowledgements and SYNs do not wait behind data that is held for long, and what
 * they take is charged to all mice. */
TH_TEST_AFTER(tiny_mice_have_room_of_their_own, load_police, load_edt)
{
	uint64_t mice = th_now() + TH_SECOND, tat = mice + FAR;
	uint64_t cost = 100 * 2 * TH_NS_PER_BYTE;
	struct th_result r;

	th_set_tat(&run, tat);
	th_set_mice_tat(&run, mice);
	th_set_tiny_tat(&run, th_now() + limits.reserve_ns / 2);
	r = send(MAKE4, 907, 100);
	is_free_to_go(&r);
	assert_int_equal(th_mice_tat(&run), mice + cost);
	assert_int_equal(th_tat(&run), tat + cost / 2);
	th_set_tiny_tat(&run, th_now() + 4 * limits.reserve_ns);
	r = send(MAKE4, 908, 100);
	assert_int_not_equal(r.counter, NATRA_COUNT_MICE);
}

TH_TEST_AFTER(mice_over_their_share_are_charged_in_full, load_police, load_edt)
{
	uint64_t from = th_coarse_now();
	struct th_result r;

	th_set_mice_tat(&run, th_now() + FAR);
	/* The bucket is full: its credit is the burst of 1 s, and no more. */
	th_set_tat(&run, 0);
	r = send(MAKE4, 300, SMALL);
	is_free_to_go(&r);
	assert_in_range(th_tat(&run), from - TH_SECOND + SMALL * TH_NS_PER_BYTE,
			r.after_ns - TH_SECOND + SMALL * TH_NS_PER_BYTE);
}

/* At 100 Gbit/s 60 bytes take 4.8 ns. Each packet's charge is rounded up or
 * down by chance, so that the sum is right. */
TH_TEST_AFTER(parts_of_a_nanosecond_are_charged_on_the_average, load_police)
{
	uint64_t tat = th_now() - TH_SECOND;

	limits.pass = NATRA_PASS_OFF;
	/* The burst of 60 s is never all saved up while the packets are sent,
	 * however slow the CPU is. */
	limits.rate = policy_rate(100000000000, 100000000000 / 8 * 60);
	limits.ramp_mult = UINT64_MAX / limits.rate.burst_ns;
	th_set_limits(&run, &limits);
	th_set_tat(&run, tat);
	for (uint16_t port = 1; port <= 1000; port++) {
		struct th_result r = send(MAKE4, port, 60);

		assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
	}
	/* The bounds are eight standard deviations away: 0.4 ns for a packet,
	 * 13 ns for all. */
	assert_in_range(th_tat(&run) - tat, 4700, 4900);
}

/* 128 bytes hold an acknowledgement with all of its options, over IPv6 as well,
 * and hardly more than that. */
TH_TEST_AFTER(tiny_is_up_to_128_bytes, load_police, load_edt)
{
	struct th_result r;

	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		th_set_tat(&run, th_now() + FAR);
		th_set_mice_tat(&run, th_now() + FAR);
		th_set_tiny_tat(&run, th_now() + TH_SECOND / 8);
		r = send(kinds[i], 400 + i, 128);
		is_free_to_go(&r);
		r = send(kinds[i], 500 + i, 129);
		assert_int_not_equal(r.counter, NATRA_COUNT_MICE);
	}
}

TH_TEST(elephants_are_paced_beside_them)
{
	uint64_t tat = th_now() + TH_SECOND;
	struct th_result r;

	th_set_mice_tat(&run, 12345);
	th_set_tat(&run, tat);
	r = send(MAKE4, 7, LARGE);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat);
	r = send(MAKE4, 7, LARGE);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat + LARGE * TH_NS_PER_BYTE);
	/* Another flow has its own turn. */
	r = send(MAKE6, 7, LARGE);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat);
	assert_int_equal(th_mice_tat(&run), 12345);
	/* Mice that are also beyond the horizon count as dropped for that. */
	th_set_tat(&run, th_now() + FAR);
	r = send(MAKE4, 7, LARGE);
	assert_int_equal(r.counter, NATRA_COUNT_DROPPED_HORIZON);
	assert_int_equal(r.verdict, TC_ACT_SHOT);
}

/* Ingress pacing marks packets that would wait for long, but not mice. */
TH_TEST(mice_are_not_marked)
{
	struct th_result r;

	limits.target_ns = TH_SECOND / 2;
	th_set_limits(&run, &limits);
	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		th_set_tat(&run, th_now() + TH_SECOND);
		th_set_mice_tat(&run, 0);
		r = send(kinds[i], 600 + i, SMALL);
		is_free_to_go(&r);
	}
	r = send(MAKE4, 7, LARGE);
	assert_int_equal(r.counter, NATRA_COUNT_MARKED);
	assert_int_equal(r.data[15] & CE, CE);
}

TH_TEST_AFTER(free_mice_do_not_wait_for_elephants, load_edt_free)
{
	uint64_t tat = th_now() + TH_SECOND;
	struct th_result r;

	for (size_t i = 0; i < TH_LEN(kinds); i++) {
		th_set_tat(&run, tat);
		r = send(kinds[i], 700 + i, SMALL);
		is_free_to_go(&r);
		assert_int_equal(th_tat(&run), tat);
	}
	r = send(MAKE4, 7, LARGE);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat);
}

TH_BPF_MAIN(load_edt, unload)
