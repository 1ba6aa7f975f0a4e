/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fair shares where packets can be marked or dropped and not held: the functions of
 * natra_fair.h for that, and the behaviour of senders.
 */
#include "cm.h"

#include <math.h>

#include "fair_cases.h"
#include "natra_fair.h"
#include "natra_groups.h"
#include "policy/policy.h"
#include "policy_of.h"

/* Judges a packet whose flow has left_ns of its burst left. */
static enum natra_counter policed(const struct natra_limits *l, int64_t left_ns,
				  uint32_t random)
{
	const uint64_t now = 100 * SIM_SECOND;
	const uint64_t turn = now - (uint64_t)left_ns;

	return natra_fair_police(l, now, turn, natra_fair_chance(l, now, turn),
				 random);
}

TH_TEST(police_drops_at_the_end_of_the_burst)
{
	const struct natra_limits l = limits_of(10 * MBIT, POLICE);
	const int64_t most = (int64_t)l.max_overdraft_ns;

	assert_int_equal(policed(&l, 100 * SIM_SECOND, 0),
			 NATRA_COUNT_ADMITTED);
	assert_int_equal(policed(&l, 16 * SIM_MS, 0), NATRA_COUNT_ADMITTED);
	/* x is 499/500 with 1 ms left: 0.998^1024 is 0.129. */
	assert_int_equal(policed(&l, SIM_MS, 1U << 29), NATRA_COUNT_MARKED);
	assert_int_equal(policed(&l, SIM_MS, 3U << 28), NATRA_COUNT_ADMITTED);
	assert_int_equal(policed(&l, 0, UINT32_MAX), NATRA_COUNT_MARKED);
	assert_int_equal(policed(&l, -most, UINT32_MAX), NATRA_COUNT_MARKED);
	assert_int_equal(policed(&l, -most - 1, UINT32_MAX),
			 NATRA_COUNT_DROPPED_RATE);
}

/* A bucket is full when it has all of the time since the boot, if its burst takes longer. */
TH_TEST(burst_longer_than_the_uptime_is_not_used_up)
{
	static const uint64_t uptimes_s[] = {60, 3600, 86400, 100 * 86400};
	static const uint64_t bursts[] = {MBIT * MBIT, 1000 * MBIT * MBIT,
					  INT64_MAX};

	for (size_t i = 0; i < TH_LEN(uptimes_s) * TH_LEN(bursts); i++) {
		const uint64_t now =
			uptimes_s[i % TH_LEN(uptimes_s)] * SIM_SECOND;
		struct natra_policy p = policy_of(10 * MBIT, 0);
		struct natra_group_limits group = {0};
		struct natra_limits l;

		p.ingress_burst_bits = bursts[i / TH_LEN(uptimes_s)];
		l = policy_limits(&p, LEG_INGRESS, false);
		group.rate = l.rate;
		group.ramp_mult = l.ramp_mult;
		assert_int_equal(natra_fair_chance(&l, now, 0), 0);
		assert_int_equal(natra_fair_chance(&l, now, now / 2), 0);
		assert_int_equal(natra_fair_chance(&l, now, now),
				 NATRA_FAIR_SURE);
		assert_int_equal(natra_group_to_scale(&group, now, now / 2), 0);
	}
}

/* Flows may gain 67 ms of the rate and one packet more at once, and then 1/32 of the rate. */
TH_TEST(little_is_forgiven)
{
	uint64_t now = 100 * SIM_SECOND;
	__u64 tat = 0;

	for (int i = 0; i <= 67; i++)
		assert_true(natra_fair_forgive(&tat, now, SIM_MS));
	assert_false(natra_fair_forgive(&tat, now, SIM_MS));
	/* Soon after a boot it is 1/32 of the time that the machine is up. */
	tat = 0;
	for (int i = 0; i <= 31; i++)
		assert_true(natra_fair_forgive(&tat, SIM_SECOND, SIM_MS));
	assert_false(natra_fair_forgive(&tat, SIM_SECOND, SIM_MS));
	tat = now + 1;
	for (int i = 0; i < 3; i++) {
		assert_false(natra_fair_forgive(&tat, now, SIM_MS));
		assert_true(natra_fair_forgive(&tat, now + 1, SIM_MS));
		now += 32 * SIM_MS;
	}
}

/* A flow has its next turn at once after a drop, at the cost of what is forgiven. */
TH_TEST(dropped_flow_may_go_on)
{
	const struct natra_limits l = limits_of(10 * MBIT, POLICE);
	const uint64_t now = 100 * SIM_SECOND, turn = now + 6 * SIM_MS;
	const uint64_t far = now + l.max_overdraft_ns + 1;
	const uint32_t k_more = 7 * NATRA_FAIR_K_ONE;
	/* K is 8, so the flow gains an eighth of the time. */
	const uint64_t gain = (6 * SIM_MS + NATRA_FAIR_RELIEF_NS) / 8;
	const uint64_t first = now - (NATRA_FAIR_FORGIVEN_NS << 5);
	__u64 clocks[NATRA_FAIR_ROWS * NATRA_FAIR_WIDTH] = {0}, forgiven = 0;
	__u64 *clock = &clocks[0], *other = &clocks[NATRA_FAIR_WIDTH];

	*clock = turn;
	*other = turn + SIM_MS;
	natra_fair_relieve(clocks, 0, &l, k_more, now, turn, &forgiven);
	assert_int_equal(*clock, now - NATRA_FAIR_RELIEF_NS);
	assert_int_equal(forgiven, first + 32 * gain);
	/* The later cell may be another flow's. */
	assert_int_equal(*other, turn + SIM_MS);
	/* The clock is not what makes the flow wait. */
	natra_fair_relieve(clocks, 0, &l, k_more, now, turn, &forgiven);
	assert_int_equal(*clock, now - NATRA_FAIR_RELIEF_NS);
	assert_int_equal(forgiven, first + 32 * gain);
	/* Marks do not bring a flow so far. */
	*clock = far;
	natra_fair_relieve(clocks, 0, &l, k_more, now, far, &forgiven);
	assert_int_equal(*clock, far);
	assert_int_equal(forgiven, first + 32 * gain);
	/* Nothing may be forgiven. */
	*clock = turn;
	forgiven = now + 1;
	natra_fair_relieve(clocks, 0, &l, k_more, now, turn, &forgiven);
	assert_int_equal(*clock, turn);
	assert_int_equal(forgiven, now + 1);
}

/* The turn of a packet that is marked and goes before it is not the latest: what its flow takes
 * beyond now is overdraft, as that of others is. */
TH_TEST(marked_turn_is_not_the_latest)
{
	const struct natra_limits l = limits_of(10 * MBIT, POLICE);
	const uint64_t now = 100 * SIM_SECOND, ahead = now + 50 * SIM_MS;
	__u64 clocks[NATRA_FAIR_ROWS * NATRA_FAIR_WIDTH] = {0};
	struct natra_fair fair = {.tat_ns = now + SIM_SECOND};
	struct natra_span span;
	struct natra_turn turn;

	clocks[0] = clocks[NATRA_FAIR_WIDTH] = ahead;
	natra_fair_span(&fair, &l, now, SIM_MS, false, &span);
	/* An overdraft over the bound would decide the turn. */
	span.latest_ns = fair.tat_ns;
	natra_fair_turn(&fair, clocks, 0, &span, l.fair_shift, &turn);
	assert_int_equal(turn.turn_ns, ahead);
	span.latest_ns = now - SIM_MS;
	natra_fair_charge(&fair, &span, &turn, SIM_MS, false);
	assert_int_equal(fair.latest_ns, now);
	assert_int_equal(clocks[0], ahead + SIM_MS);
}

/* A stream gets as much with marks as with drops, at any of these round trips. */
TH_TEST(marked_stream_has_the_rate)
{
	for (size_t t = 0; t < TH_LEN(round_trips_ms); t++) {
		for (uint64_t rate = 10; rate <= 100; rate *= 10) {
			double part[2];

			for (int ect = 0; ect < 2; ect++) {
				sources[0] = tcp(round_trips_ms[t], ect);
				run(POLICE, rate * MBIT, 1, 10, 60);
				part[ect] = sim_rate(&sim);
				end();
			}
			assert_true(fabs(part[1] - part[0]) < 0.01);
		}
	}
}

/* A flow that ignores marks or drops gets 1/32 of the rate more than its share at most, at the
 * cost of all others. */
TH_TEST(gain_of_who_does_not_heed_is_bounded)
{
	const double share = 1.0 / 16;

	for (int ect = 0; ect < 2; ect++) {
		sources[0] = udp(3);
		sources[0].ect = ect;
		for (size_t i = 1; i < 16; i++)
			sources[i] = udp(0.2);
		run(POLICE, 10 * MBIT, 16, 20, 60);
		assert_between(sim_share(&sim, 0), share - 0.002,
			       share + 1.0 / 32 + 0.003, "the share of one");
		for (size_t i = 1; i < 16; i++)
			assert_between(sim_share(&sim, i), share - 0.005,
				       share + 0.002, "that of another one");
		end();
	}
}

/* Losses by chance shall not make one stream saw more than losses at the end of
 * one queue did. */
TH_TEST(one_stream_saws_as_in_one_queue)
{
	for (size_t t = 0; t < TH_LEN(round_trips_ms); t++) {
		double deviation[2], losses[2];

		for (int one = 0; one < 2; one++) {
			sources[0] = tcp(round_trips_ms[t], false);
			begin(POLICE, 10 * MBIT, 1, 5 * SIM_SECOND);
			sim.one_bucket = one;
			sim_run(&sim, 5 * SIM_SECOND);
			sim_reset(&sim);
			sim_run(&sim, 65 * SIM_SECOND);
			assert_between(sim_rate(&sim), 0.98, 1.02, "rate");
			deviation[one] = sim_deviation(&sim);
			losses[one] = sim_losses(&sim);
			end();
		}
		assert_true(deviation[0] < 1.25 * deviation[1] + 0.002);
		assert_true(losses[0] < 1.15 * losses[1] + 0.001);
	}
}

/* Policed streams that are near mostly wait for TCP's timer. K comes down all the same. */
TH_TEST(too_large_a_k_is_corrected)
{
	for (size_t i = 0; i < 16; i++)
		sources[i] = tcp(1, false);
	run(POLICE, 10 * MBIT, 16, 4, 0);
	sim.state->fair.k_more = 39 * NATRA_FAIR_K_ONE;
	sim_run(&sim, 6 * SIM_SECOND);
	/* Half of what it was too large by is gone after 2 s. */
	assert_between(1 + (double)sim.state->fair.k_more / NATRA_FAIR_K_ONE, 1,
		       28, "K");
	sim_reset(&sim);
	sim_run(&sim, 12 * SIM_SECOND);
	assert_between(sim_jain(&sim, 0, 16), 0.95, 1.001, "Jain's index");
	end();
}

/* An overdraft before a silence is not taken for one that lasted all along. */
TH_TEST(silence_counts_for_two_units)
{
	const int64_t v = 2 * NATRA_FAIR_UNIT;

	for (uint64_t ticks = 1; ticks < 12; ticks++)
		assert_int_equal(natra_fair_step(v, v, ticks, 26) ==
					 natra_fair_step(v, v, ticks + 1, 26),
				 ticks >= 8);
}

/* The overdraft of policed streams swings, and K is the same again after each swing. */
TH_TEST(swings_of_the_overdraft_do_not_change_k)
{
	const int64_t one = NATRA_FAIR_UNIT;

	for (int64_t swing = one / 16; swing < 3 * one; swing += one / 16) {
		const int64_t up = natra_fair_step(one + swing, one, 0, 26);
		const int64_t down = natra_fair_step(one, one + swing, 0, 26);

		assert_true(up > 0);
		assert_in_range((one + up) * (one + down), one * one - 2 * one,
				one * one + 2 * one);
	}
}

TH_MAIN(NULL, NULL)
