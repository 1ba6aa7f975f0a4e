/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check how long packets may wait, by policy and kind of sender. */
#include "cm.h"

#include "natra_fair.h"
#include "policy_of.h"

/* 4 MB of queue, for 0.1 s to 2 s. */
TH_TEST(default_horizon_follows_the_rate_out_of_the_pod)
{
	static const struct {
		uint64_t rate, ns;
	} cases[] = {
		{0, 2 * SECOND},        {1, 2 * SECOND},
		{16000000, 2 * SECOND}, {32000000, SECOND},
		{300000000, 106666666}, {320000000, 100 * MS},
		{1000000000, 100 * MS}, {1000000000000000, 100 * MS},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		struct natra_policy p = policy_of(1000000000, cases[i].rate);

		assert_int_equal(policy_effective(&p).horizon_ns, cases[i].ns);
		if (cases[i].rate)
			assert_int_equal(policy_limits(&p, LEG_EGRESS, true)
						 .max_delay_ns,
					 cases[i].ns);
		p.horizon_ns = 3 * SECOND;
		assert_int_equal(policy_effective(&p).horizon_ns, 3 * SECOND);
	}
}

TH_TEST(delay_limit_is_that_of_the_way_it_is_kept)
{
	struct natra_policy p = policy_of(10000000, 10000000);
	struct natra_limits l;

	p.horizon_ns = 3 * SECOND;
	p.pace_limit_ns = 40 * MS;
	l = policy_limits(&p, LEG_EGRESS, true);
	assert_int_equal(l.max_delay_ns, 3 * SECOND);
	assert_int_equal(l.target_ns, 5 * MS);
	assert_int_equal(l.unfelt_delay_ns, 40 * MS);
	l = policy_limits(&p, LEG_EGRESS, false);
	/* It is the time of 64 KiB, from 10 to 100 ms. */
	assert_int_equal(l.max_overdraft_ns, 52428800);
	p.egress_rate_bits_per_sec = 1000000;
	l = policy_limits(&p, LEG_EGRESS, false);
	assert_int_equal(l.max_overdraft_ns, 100 * MS);
	p.egress_rate_bits_per_sec = 1000000000;
	l = policy_limits(&p, LEG_EGRESS, false);
	assert_int_equal(l.max_overdraft_ns, 10 * MS);
	l = policy_limits(&p, LEG_HOST, true);
	assert_int_equal(l.max_delay_ns, 40 * MS);
	assert_int_equal(l.target_ns, 5 * MS);
	assert_int_equal(l.unfelt_delay_ns, 40 * MS);
	p.pace_limit_ns = 8 * MS;
	l = policy_limits(&p, LEG_HOST, true);
	assert_int_equal(l.target_ns, 4 * MS);
	p.pace_limit_ns = 40 * MS;
	p.horizon_ns = 30 * MS;
	l = policy_limits(&p, LEG_EGRESS, true);
	assert_int_equal(l.max_delay_ns, 30 * MS);
	assert_int_equal(l.unfelt_delay_ns, 30 * MS);
}

TH_TEST(who_does_not_feel_the_delay_waits_for_less)
{
	const struct natra_policy p = policy_of(0, 10000000);
	const struct natra_limits l = policy_limits(&p, LEG_EGRESS, true);
	static const struct {
		uint64_t delay_ns;
		enum natra_counter felt, unfelt;
	} cases[] = {
		{0, NATRA_COUNT_ADMITTED, NATRA_COUNT_ADMITTED},
		{50 * MS, NATRA_COUNT_PACED, NATRA_COUNT_PACED},
		{50 * MS + 1, NATRA_COUNT_PACED, NATRA_COUNT_DROPPED_HORIZON},
		{2 * SECOND, NATRA_COUNT_PACED, NATRA_COUNT_DROPPED_HORIZON},
		{2 * SECOND + 1, NATRA_COUNT_DROPPED_HORIZON,
		 NATRA_COUNT_DROPPED_HORIZON},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		uint64_t turn = SECOND + cases[i].delay_ns;

		assert_int_equal(natra_fair_hold(&l, SECOND, turn, true),
				 cases[i].felt);
		assert_int_equal(natra_fair_hold(&l, SECOND, turn, false),
				 cases[i].unfelt);
	}
}

/* Behind half of its ramp who feels the delay hears of a fourth of the packets, and who does not
 * of each. */
TH_TEST(who_does_not_feel_the_delay_hears_of_it_earlier)
{
	const uint64_t half_ns = 1ULL << (NATRA_FAIR_RAMP_SHIFT - 1);
	static const struct {
		uint32_t random;
		bool felt;
	} cases[] = {
		{0x7fff7fff, true},
		{0x7fff8000, false},
		{0x80007fff, false},
		{0xffffffff, false},
	};

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		assert_int_equal(natra_fair_signals(half_ns, true,
						    NATRA_FAIR_WHOLE, 1500,
						    cases[i].random),
				 cases[i].felt);
		assert_true(natra_fair_signals(half_ns, false, NATRA_FAIR_WHOLE,
					       1500, cases[i].random));
	}
}

TH_MAIN(NULL, NULL)
