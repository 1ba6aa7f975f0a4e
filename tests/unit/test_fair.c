/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fair shares among heavy flows: the functions of natra_fair.h by themselves, and the
 * behaviour of sources that send through them (fair_sim.h), with the limits that a
 * policy gives.
 */
#include "cm.h"

#include <string.h>

#include "fair_cases.h"
#include "natra_bucket.h"
#include "natra_fair.h"
#include "policy/policy.h"

static const uint64_t rates[] = {MBIT, 10 * MBIT, 100 * MBIT, 1000 * MBIT};

/* A thousand messages a second, which are `caps` of the rate together. */
static struct sim_source requests(double caps, uint64_t rate_bits)
{
	return (struct sim_source){
		.kind = SIM_RR,
		.caps = caps,
		.bytes = (uint32_t)(caps * (double)rate_bits / 8000),
		.rtt_ns = SIM_MS / 2,
	};
}

/* The packets that pass make up the rate, however many flows there are. */
static void check_rate(enum mode mode, double tolerance)
{
	static const size_t flows[] = {1, 4, 16, 64};

	for (size_t r = 0; r < TH_LEN(rates); r++) {
		for (size_t f = 0; f < TH_LEN(flows); f++) {
			/* More caps, so that no flow is a mouse. */
			double caps = flows[f] == 64 ? 6 : 2;

			for (size_t i = 0; i < flows[f]; i++)
				sources[i] = udp(caps / (double)flows[f]);
			run(mode, rates[r], flows[f], r == 3 ? 5 : 8,
			    r == 3 ? 2 : 8);
			assert_between(sim_rate(&sim), 1 - tolerance,
				       1 + tolerance, "rate");
			end();
		}
	}
}

TH_TEST(rate_is_exact_where_packets_are_held)
{
	check_rate(EDT, 0.02);
}

/* What streams overdraw while they find their shares is little, because they pay it
 * back: soon after a start, too, the rate is what it should be. */
TH_TEST(rate_is_exact_soon_after_a_start)
{
	static const size_t flows[] = {1, 4, 16};

	for (size_t r = 1; r <= 2; r++) {
		for (size_t f = 0; f < TH_LEN(flows); f++) {
			for (size_t t = 0; t < TH_LEN(round_trips_ms); t++) {
				for (size_t i = 0; i < flows[f]; i++)
					sources[i] =
						tcp(round_trips_ms[t], false);
				begin(EDT, rates[r], flows[f], 5 * SIM_SECOND);
				sim_run(&sim, 1500 * SIM_MS);
				sim_reset(&sim);
				sim_run(&sim, 4000 * SIM_MS);
				assert_between(sim_rate(&sim), 0.98, 1.02,
					       "rate after 1.5 s");
				end();
			}
		}
	}
}

TH_TEST(rate_is_near_where_packets_are_policed)
{
	check_rate(POLICE, 0.05);
}

TH_TEST(equal_flows_have_equal_shares)
{
	for (enum mode mode = POLICE; mode < MODES; mode++) {
		for (size_t t = 0; t < TH_LEN(round_trips_ms); t++) {
			for (size_t r = 1; r <= 2; r++) {
				for (size_t i = 0; i < 16; i++)
					sources[i] =
						tcp(round_trips_ms[t], false);
				run(mode, rates[r], 16, 4, 8);
				assert_between(sim_jain(&sim, 0, 16), 0.95,
					       1.001, "Jain's index");
				assert_between(sim_rate(&sim), 0.95, 1.05,
					       "rate");
				end();
			}
		}
	}
}

TH_TEST(stream_has_its_share_beside_a_flood)
{
	static const double caps[] = {1, 3, 10};

	for (enum mode mode = POLICE; mode < MODES; mode++) {
		for (size_t c = 0; c < TH_LEN(caps); c++) {
			for (size_t t = 0; t < TH_LEN(round_trips_ms); t++) {
				sources[0] = tcp(round_trips_ms[t], false);
				sources[1] = udp(caps[c]);
				/* Fast senders send GSO packets. */
				if (c == 2)
					sources[1].bytes *= 4;
				run(mode, 10 * MBIT, 2, 4, 8);
				assert_between(sim_share(&sim, 0), 0.45, 0.6,
					       "share beside a flood");
				end();
			}
		}
	}
}

TH_TEST(marks_and_drops_are_alike)
{
	for (enum mode mode = POLICE; mode < MODES; mode++) {
		for (size_t t = 0; t < TH_LEN(round_trips_ms); t++) {
			sources[0] = tcp(round_trips_ms[t], true);
			sources[1] = tcp(round_trips_ms[t], false);
			run(mode, 10 * MBIT, 2, 8, 24);
			assert_between(sim_share(&sim, 0), 0.45, 0.55,
				       "share of the flow with ECT");
			end();
		}
		sources[0] = udp(1.5);
		sources[0].ect = true;
		sources[1] = udp(1.5);
		run(mode, 10 * MBIT, 2, 2, 4);
		assert_between(sim_share(&sim, 0), 0.45, 0.55,
			       "share of a sender that ignores its marks");
		end();
	}
}

/* Messages of a flow under its fair share do not wait, and none is lost. */
TH_TEST(little_flow_does_not_wait)
{
	static const double caps[] = {0.01, 0.05, 0.08, 0.16, 0.3};
	static const size_t streams[] = {1, 4, 16};

	for (enum mode mode = POLICE; mode < MODES; mode++) {
		for (size_t c = 0; c < TH_LEN(caps); c++) {
			for (size_t s = 0; s < TH_LEN(streams); s++) {
				double mean_ms;

				if (caps[c] * ((double)streams[s] + 1) > 0.85)
					continue;
				sources[0] = requests(caps[c], 10 * MBIT);
				for (size_t i = 1; i <= streams[s]; i++)
					sources[i] = tcp(10, false);
				run(mode, 10 * MBIT, streams[s] + 1, 4, 8);
				mean_ms = (double)sources[0].delay_sum_ns /
					  (double)sources[0].delays / SIM_MS;
				assert_between(mean_ms, 0, 1, "mean delay, ms");
				assert_between(sim_share(&sim, 0) / caps[c],
					       0.9, 1.1, "served");
				end();
			}
		}
	}
}

TH_TEST(shares_are_found_within_two_seconds)
{
	for (enum mode mode = POLICE; mode < MODES; mode++) {
		for (size_t i = 0; i < 16; i++) {
			sources[i] = tcp(10, false);
			if (i) {
				sources[i].start_ns = 3 * SIM_SECOND;
				sources[i].stop_ns = 7 * SIM_SECOND;
			}
		}
		begin(mode, 10 * MBIT, 16, 5 * SIM_SECOND);
		sim_run(&sim, 5 * SIM_SECOND);
		sim_reset(&sim);
		sim_run(&sim, 7 * SIM_SECOND);
		assert_between(sim_jain(&sim, 0, 16), 0.9, 1.001,
			       "Jain's index 2 s after 15 flows have come");
		sim_run(&sim, 9 * SIM_SECOND);
		sim_reset(&sim);
		sim_run(&sim, 11 * SIM_SECOND);
		assert_between(sim_share(&sim, 0), 0.95, 1.05,
			       "share 2 s after 15 flows have left");
		end();
	}
}

/* The clock begins with 0, and a burst takes longer than the machine is up. */
TH_TEST(nothing_wraps_just_after_a_boot)
{
	static const uint64_t slow[] = {1000, 64000, MBIT, 1000 * MBIT};
	const struct natra_limits *l = &sim.limits;

	for (enum mode mode = POLICE; mode < MODES; mode++) {
		for (size_t r = 0; r < TH_LEN(slow); r++) {
			const uint64_t s = r == 3 ? 2 : 60;
			uint64_t bytes = 0, most;

			for (size_t i = 0; i < 4; i++) {
				sources[i] = udp(1);
				sources[i].ect = i == 0;
			}
			begin(mode, slow[r], 4, 1);
			sim_run(&sim, s * SIM_SECOND);
			for (size_t i = 0; i < 4; i++)
				bytes += sources[i].passed_bytes;
			/* Mice, a burst, the time, what is held, the overdraft
			 * and a packet of debt for each flow. */
			most = slow[r] / 8 *
				       ((2ULL << l->fair_shift) +
					s * SIM_SECOND + l->rate.burst_ns +
					(sim.edt ? l->max_delay_ns
						 : l->max_overdraft_ns)) /
				       SIM_SECOND +
			       (3 * slow[r] / 8 << l->fair_shift) / SIM_SECOND +
			       4 * (64ULL * l->enter_units + 2 * SIM_SEGMENT);
			assert_in_range(bytes, 1, most);
			end();
		}
	}
}

TH_TEST(k_times_the_longest_cost_does_not_overflow)
{
	const struct natra_rate slowest = policy_rate(1, 1);
	const uint64_t cost = natra_cost_ns(&slowest, 1U << 19, 0);
	const uint32_t k_more = NATRA_FAIR_K_MAX - NATRA_FAIR_K_ONE;

	assert_int_equal(natra_fair_times_k(cost, k_more), cost * 256);
	assert_true(cost < UINT64_MAX / 512);
	assert_int_equal(natra_fair_times_k(5000, 0), 5000);
	assert_int_equal(natra_fair_times_k(5000, NATRA_FAIR_K_ONE / 2), 7500);
}

/* A clock that was set under other limits neither holds its flow for ever nor
 * lets it overtake what fq holds. */
TH_TEST(stale_clock_is_set_again)
{
	static __u64 clocks[NATRA_FAIR_ROWS * NATRA_FAIR_WIDTH];
	const uint64_t now = 100 * SIM_SECOND;
	struct natra_fair fair = {.tat_ns = now + 10 * SIM_SECOND};
	struct natra_limits l = limits_of(10 * MBIT, EDT);
	struct natra_span span;
	struct natra_turn turn;

	for (size_t i = 0; i < TH_LEN(clocks); i++)
		clocks[i] = now + 3600 * SIM_SECOND;
	fair.latest_ns = fair.tat_ns;
	natra_fair_span(&fair, &l, now, SIM_MS, true, &span);
	natra_fair_turn(&fair, clocks, 12345, &span, l.fair_shift, &turn);
	assert_int_equal(turn.turn_ns, now + l.max_delay_ns);
	natra_fair_charge(&fair, &span, &turn, SIM_MS, false);
	assert_int_equal(*turn.clock[0], now + l.max_delay_ns + SIM_MS);
	assert_int_equal(*turn.clock[1], now + l.max_delay_ns + SIM_MS);
	assert_int_equal(fair.tat_ns, now + 10 * SIM_SECOND + SIM_MS);
}

/* A short packet behind one of 64 kB, or of 512 kB of BIG TCP, is judged by the clock that the
 * long one has set, at any rate and K. */
TH_TEST(long_packet_is_not_forgotten)
{
	static const uint64_t slow_rates[] = {8000, MBIT, 10 * MBIT,
					      100 * MBIT};
	static const uint32_t lengths[] = {68130, 548000};
	static __u64 clocks[NATRA_FAIR_ROWS * NATRA_FAIR_WIDTH];
	const uint64_t now = 100000 * SIM_SECOND;
	struct natra_fair fair;
	struct natra_span span;
	struct natra_turn turn;

	for (size_t i = 0; i < 4 * TH_LEN(slow_rates); i++) {
		const bool held = i % 2;
		struct natra_limits l =
			limits_of(slow_rates[i / 4], held ? PACE : POLICE);
		const uint64_t cost =
			natra_cost_ns(&l.rate, lengths[i / 2 % 2], 0);
		const uint64_t end =
			now + natra_fair_times_k(cost, 7 * NATRA_FAIR_K_ONE);

		memset(clocks, 0, sizeof(clocks));
		fair = (struct natra_fair){.tat_ns = now + 36000 * SIM_SECOND,
					   .k_more = 7 * NATRA_FAIR_K_ONE};
		fair.latest_ns = fair.tat_ns;
		natra_fair_span(&fair, &l, now, cost, held, &span);
		span.low_ns = now;
		natra_fair_turn(&fair, clocks, 1, &span, l.fair_shift, &turn);
		natra_fair_charge(&fair, &span, &turn, cost, false);
		assert_int_equal(*natra_fair_clock(clocks, 1), end);
		/* An overdraft over the bound would decide the turn. */
		fair.latest_ns = fair.tat_ns;
		natra_fair_span(&fair, &l, now, cost / 512, held, &span);
		natra_fair_turn(&fair, clocks, 1, &span, l.fair_shift, &turn);
		assert_int_equal(turn.turn_ns, end);
	}
}

/* Two flows with the same cell in one row have clocks of their own. */
TH_TEST(shared_cell_makes_nobody_wait)
{
	static __u64 clocks[NATRA_FAIR_ROWS * NATRA_FAIR_WIDTH];
	/* A row's cell is chosen by 9 or more bits of the hash's lowest 16, or of
	 * the next 16. */
	const uint64_t busy = 0x00010001, same_first = 0x00020001,
		       same_second = 0x00010002;
	const uint64_t now = 100 * SIM_SECOND;
	const struct natra_limits l = limits_of(10 * MBIT, EDT);
	struct natra_fair fair = {.tat_ns = now + 20 * SIM_MS,
				  .latest_ns = now + 20 * SIM_MS};
	struct natra_span span;
	struct natra_turn turn;

	natra_fair_span(&fair, &l, now, SIM_MS, true, &span);
	natra_fair_turn(&fair, clocks, busy, &span, l.fair_shift, &turn);
	*turn.clock[0] = *turn.clock[1] = now + 10 * SIM_MS;
	natra_fair_turn(&fair, clocks, busy, &span, l.fair_shift, &turn);
	assert_int_equal(turn.turn_ns, now + 10 * SIM_MS);
	natra_fair_turn(&fair, clocks, same_first, &span, l.fair_shift, &turn);
	assert_int_equal(*turn.clock[0], now + 10 * SIM_MS);
	assert_int_equal(turn.turn_ns, span.low_ns);
	natra_fair_turn(&fair, clocks, same_second, &span, l.fair_shift, &turn);
	assert_int_equal(*turn.clock[1], now + 10 * SIM_MS);
	assert_int_equal(turn.turn_ns, span.low_ns);
}

/* A flow that was silent may send what it left of its share for three units, and
 * not for the whole burst, where packets can wait. */
TH_TEST(unused_share_is_kept_for_three_units)
{
	const struct natra_fair fair = {0};
	const uint64_t now = 100 * SIM_SECOND;
	struct natra_limits l = limits_of(10 * MBIT, EDT);
	struct natra_span span;

	natra_fair_span(&fair, &l, now, SIM_MS, true, &span);
	assert_int_equal(span.low_ns, now - (3ULL << l.fair_shift));
	l.rate.burst_ns = SIM_MS;
	natra_fair_span(&fair, &l, now, SIM_MS, true, &span);
	assert_int_equal(span.low_ns, now - SIM_MS);
	l = limits_of(10 * MBIT, POLICE);
	natra_fair_span(&fair, &l, now, SIM_MS, false, &span);
	assert_int_equal(span.low_ns, now - SIM_SECOND / 2);
}

/* A packet needs the exact time if its turn is near. What becomes of all others is known
 * from the time of the last tick. */
TH_TEST(time_is_exact_where_it_matters)
{
	const uint64_t now = 100 * SIM_SECOND;
	struct natra_limits l = limits_of(10 * MBIT, EDT);
	const uint64_t horizon = now + l.max_delay_ns;
	uint64_t sure;

	assert_false(natra_fair_is_near(&l, now, now, true));
	assert_true(natra_fair_is_near(&l, now, now + 1, true));
	assert_true(natra_fair_is_near(&l, now, horizon, true));
	assert_false(natra_fair_is_near(&l, now, horizon + 1, true));
	l = limits_of(10 * MBIT, POLICE);
	sure = now - l.rate.burst_ns / 32;
	assert_false(natra_fair_is_near(&l, now, sure, false));
	assert_true(natra_fair_is_near(&l, now, sure + 1, false));
	assert_int_equal(natra_fair_chance(&l, now, sure), 0);
	assert_true(natra_fair_is_near(&l, now, now + SIM_SECOND, false));
}

/* The bound of the overdraft is three units of any length but the shortest. */
TH_TEST(overdraft_is_bounded_at_the_longest_unit)
{
	const struct natra_limits l = limits_of(1000, EDT);
	const uint64_t now = 100 * SIM_SECOND;
	const uint64_t bound = 3ULL << 32;
	const struct natra_fair fair = {.tat_ns = now + 2 * bound};
	__u64 clocks[NATRA_FAIR_ROWS * NATRA_FAIR_WIDTH] = {0};
	struct natra_span span;
	struct natra_turn turn;

	assert_int_equal(l.fair_shift, 32);
	natra_fair_span(&fair, &l, now, SIM_MS, true, &span);
	natra_fair_turn(&fair, clocks, 0, &span, l.fair_shift, &turn);
	assert_int_equal(turn.turn_ns, fair.tat_ns - bound);
}

/* The unit is no less than a long packet takes; see natra_fair.h. */
TH_TEST(fair_unit_follows_the_rate)
{
	static const struct {
		uint64_t rate;
		uint32_t egress, policed, pace;
	} cases[] = {
		{1000, 32, 32, 32},
		{1000000, 25, 27, 28},
		{10000000, 24, 26, 25},
		{100000000, 24, 26, 24},
		{1000000000, 24, 26, 24},
		{NATRA_RATE_MAX_BITS_PER_SEC, 24, 26, 24},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct natra_limits l = limits_of(cases[i].rate, EDT);

		assert_int_equal(l.fair_shift, cases[i].egress);
		l = limits_of(cases[i].rate, PACE);
		assert_int_equal(l.fair_shift, cases[i].pace);
		l = limits_of(cases[i].rate, POLICE);
		assert_int_equal(l.fair_shift, cases[i].policed);
		assert_int_equal(l.ramp_mult, UINT64_MAX / l.rate.burst_ns);
	}
}

TH_MAIN(NULL, NULL)
