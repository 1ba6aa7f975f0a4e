/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check mice that have a ceiling in total (NATRA_PASS_GUARDED): under it they
 * are free, and over it they are judged and charged like heavy flows, which they are
 * not listed among. */
#include "cm.h"

#include <stdlib.h>

#include "progrun.h"
#include "util/cleanup.h"

#define SMALL 500
#define LARGE 1514
#define FAR   (3600 * TH_SECOND)

static struct progrun run;
static struct natra_limits limits;

/* With these limits a large packet is heavy at once, and two small packets of
 * one flow are not. A byte takes 1000 ns of the rate and 2000 ns of the ceiling. */
static int load(enum stub_kind kind)
{
	limits = th_limits();
	limits.pass = NATRA_PASS_GUARDED;
	limits.rate = policy_rate(8000000, 1000000);
	limits.ramp_mult = UINT64_MAX / limits.rate.burst_ns;
	limits.enter_units = 20;
	limits.leave_units = 2;
	run = th_load_kind(kind, &limits);
	return 0;
}

static int load_police(void **state)
{
	(void)state;
	return load(STUB_RX);
}

static int load_police_tx(void **state)
{
	(void)state;
	return load(STUB_TX);
}

static int load_edt(void **state)
{
	(void)state;
	return load(STUB_EDT);
}

static int unload(void **state)
{
	(void)state;
	th_close(&run);
	return 0;
}

static struct th_result send(uint16_t port, size_t len)
{
	struct th_result r;
	struct packet p;

	packet_make_tcp6(&p, port, 0, len);
	th_send(&run, &p, NULL, &r);
	assert_int_equal(r.bytes, len);
	return r;
}

/* So many packets were over the ceiling, and no mouse is in the table of flows. */
static void guarded(uint64_t packets, size_t flows)
{
	struct natra_counters sum;
	size_t len, listed = 0;
	cleanup_free struct natra_state *s = th_read_state(&run, &len);

	th_counters(&run, &sum);
	assert_int_equal(sum.guarded.packets, packets);
	assert_int_equal(sum.guarded.bytes, packets * SMALL);
	for (size_t i = 0; i < NATRA_FLOWS; i++)
		listed += s->flows[i].tag != 0;
	assert_int_equal(listed, flows);
}

static void mice_under_the_ceiling_are_free(void **state)
{
	const uint64_t tat = th_now() + FAR, from = th_coarse_now();
	struct th_result r;

	(void)state;
	th_set_tat(&run, tat);
	th_clear_clocks(&run);
	th_set_mice_tat(&run, 0);
	r = send(1, SMALL);
	assert_int_equal(r.counter, NATRA_COUNT_MICE);
	assert_int_equal(r.verdict, TC_ACT_UNSPEC);
	assert_int_equal(r.tstamp, 0);
	assert_int_equal(th_tat(&run), tat);
	/* The ceiling's burst of one byte is a credit of 2 us. */
	assert_in_range(th_mice_tat(&run),
			from + (SMALL - 1) * 2 * TH_NS_PER_BYTE,
			r.after_ns + SMALL * 2 * TH_NS_PER_BYTE);
	guarded(0, 0);
}

/* A flow that is within its fair share passes as heavy, however many mice there
 * are. */
static void mice_over_it_have_fair_shares(void **state)
{
	const uint64_t mice = th_now() + FAR, tat = th_now();

	(void)state;
	th_set_mice_tat(&run, mice);
	th_set_queue(&run, tat);
	th_clear_clocks(&run);
	for (uint16_t port = 1; port <= 8; port++) {
		const struct th_result r = send(port, SMALL);

		assert_int_equal(r.counter, NATRA_COUNT_ADMITTED);
		assert_int_equal(r.tstamp, 0);
	}
	assert_int_equal(th_tat(&run), tat + 8 * SMALL * TH_NS_PER_BYTE);
	assert_int_equal(th_mice_tat(&run), mice);
	guarded(8, 0);
}

static void mice_over_both_are_dropped(void **state)
{
	const uint64_t tat = th_now() + FAR, mice = th_now() + FAR;
	struct th_result r;

	(void)state;
	th_set_tat(&run, tat);
	th_set_mice_tat(&run, mice);
	r = send(1, SMALL);
	assert_int_equal(r.counter, NATRA_COUNT_DROPPED_RATE);
	assert_int_equal(r.verdict, TC_ACT_SHOT);
	assert_int_equal(th_tat(&run), tat);
	assert_int_equal(th_mice_tat(&run), mice);
	guarded(1, 0);
}

static void mice_over_both_wait_for_their_turn(void **state)
{
	const uint64_t tat = th_now() + TH_SECOND, mice = th_now() + FAR;
	struct th_result r;

	(void)state;
	th_set_tat(&run, tat);
	th_set_mice_tat(&run, mice);
	r = send(1, SMALL);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	assert_int_equal(r.tstamp, tat);
	assert_int_equal(th_tat(&run), tat + SMALL * TH_NS_PER_BYTE);
	assert_int_equal(th_mice_tat(&run), mice);
	guarded(1, 0);
}

/* The next packet of a mouse that is held does not overtake it, though the ceiling
 * has room again. Other mice pass. */
static void mice_that_are_held_keep_their_order(void **state)
{
	struct th_result r;

	(void)state;
	/* A small packet takes half a second. */
	limits.rate = policy_rate(8000, 1000);
	limits.max_delay_ns = limits.unfelt_delay_ns = 60 * TH_SECOND;
	limits.enter_units = 100;
	assert_int_equal(slot_set_limits(run.n, &run.slot, &limits), 0);
	th_set_queue(&run, th_now() + TH_SECOND);
	th_clear_clocks(&run);
	th_set_mice_tat(&run, th_now() + FAR);
	/* It has a credit of 50 ms. */
	(void)send(1, SMALL);
	(void)send(1, SMALL);
	r = send(1, SMALL);
	assert_int_equal(r.counter, NATRA_COUNT_PACED);
	th_set_mice_tat(&run, 0);
	assert_int_equal(send(2, SMALL).counter, NATRA_COUNT_MICE);
	th_set_mice_tat(&run, 0);
	assert_in_range(send(1, SMALL).tstamp, r.tstamp + TH_SECOND / 2,
			UINT64_MAX);
	assert_int_equal(th_mice_tat(&run), 0);
	guarded(4, 0);
}

static void heavy_flows_take_nothing_of_the_ceiling(void **state)
{
	(void)state;
	th_set_mice_tat(&run, 12345);
	assert_int_equal(send(7, LARGE).counter, NATRA_COUNT_ADMITTED);
	assert_int_equal(th_mice_tat(&run), 12345);
	guarded(0, 1);
}

/* What the ceiling owes from before a change, as at a far lower rate, is cut to what
 * a packet may wait. */
static void changed_limits_cut_its_debt(void **state)
{
	struct th_result r;

	(void)state;
	th_set_mice_tat(&run, th_now() + FAR);
	assert_int_equal(slot_set_limits(run.n, &run.slot, &limits), 0);
	r = send(1, SMALL);
	assert_in_range(th_mice_tat(&run), 1, r.after_ns + limits.max_delay_ns);
}

static void what_is_over_it_is_told(void **state)
{
	size_t len;

	(void)state;
	th_set_mice_tat(&run, 0);
	assert_int_equal(send(1, SMALL).counter, NATRA_COUNT_MICE);
	th_set_mice_tat(&run, th_now() + FAR);
	(void)send(2, SMALL);
	(void)send(3, SMALL);
	{
		cleanup_free struct natra_state *s = th_read_state(&run, &len);

		/* A window may have ended between the two. */
		assert_in_range(s->events_reported, 1, 2);
		assert_int_not_equal(s->event_tat[NATRA_REPORT_MICE_OVER_SHARE],
				     0);
	}
}

int main(void)
{
#define CASE(prefix, name, load)                                               \
	{                                                                      \
		prefix #name, name, load, unload, NULL                         \
	}
#define POLICE(name) CASE("police_", name, load_police)
#define TX(name)     CASE("tx_", name, load_police_tx)
#define EDT(name)    CASE("edt_", name, load_edt)
	const struct CMUnitTest tests[] = {
		POLICE(mice_under_the_ceiling_are_free),
		TX(mice_under_the_ceiling_are_free),
		EDT(mice_under_the_ceiling_are_free),
		POLICE(mice_over_it_have_fair_shares),
		TX(mice_over_it_have_fair_shares),
		EDT(mice_over_it_have_fair_shares),
		POLICE(mice_over_both_are_dropped),
		EDT(mice_over_both_wait_for_their_turn),
		EDT(mice_that_are_held_keep_their_order),
		POLICE(heavy_flows_take_nothing_of_the_ceiling),
		EDT(heavy_flows_take_nothing_of_the_ceiling),
		POLICE(changed_limits_cut_its_debt),
		EDT(changed_limits_cut_its_debt),
		POLICE(what_is_over_it_is_told),
		EDT(what_is_over_it_is_told),
	};

	th_require_bpf();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
