/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "natra_bucket.h"
#include "policy/fields.h"
#include "policy_of.h"

__extension__ typedef unsigned __int128 u128;

static void assert_refused(const struct natra_policy *p, const char *field,
			   const char *value)
{
	char error[256] = "";

	assert_int_equal(policy_check(p, error, sizeof(error)), -EINVAL);
	if (strncmp(error, field, strlen(field)) != 0)
		fail_msg("'%s' does not begin with %s", error, field);
	if (!strstr(error, value))
		fail_msg("'%s' does not name %s", error, value);
	assert_null(strchr(error, '\n'));
}

static void assert_accepted(const struct natra_policy *p)
{
	char error[256] = "untouched";

	assert_int_equal(policy_check(p, error, sizeof(error)), 0);
	assert_string_equal(error, "untouched");
}

TH_TEST(nothing_and_limits_of_each_field_are_good)
{
	struct natra_policy p = policy_of(0, 0);

	assert_accepted(&p);
	p = policy_of(1, 1000000000000000);
	assert_accepted(&p);
	p.ingress_burst_bits = UINT64_MAX;
	p.egress_burst_bits = 1;
	p.heavy_hitter_threshold_bytes = UINT64_MAX;
	p.horizon_ns = 9 * SECOND;
	p.pace_limit_ns = 9 * SECOND;
	p.fast_pass_share_percent = 1000;
	p.fast_pass = NATRA_FAST_PASS_OFF;
	p.ingress_mode = NATRA_INGRESS_MODE_PACE;
	p.attach_mode = NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;
	p.edt_pacing = NATRA_EDT_PACING_OFF;
	assert_accepted(&p);
}

TH_TEST(bad_values_are_named_with_their_fields)
{
	static const struct {
		const char *field;
		uint64_t value;
		const char *shown;
	} rows[] = {
		{"ingress_rate_bits_per_sec", NATRA_RATE_MAX_BITS_PER_SEC + 1,
		 "1000000000000001"},
		{"egress_rate_bits_per_sec", UINT64_MAX,
		 "18446744073709551615"},
		{"horizon_ns", 9 * SECOND + 1, "9000000001"},
		{"pace_limit_ns", UINT64_MAX, "18446744073709551615"},
		{"fast_pass_share_percent", 1001, "1001"},
		{"fast_pass", NATRA_FAST_PASS_MAX, "3"},
		{"ingress_mode", NATRA_INGRESS_MODE_MAX, "2"},
		{"attach_mode", NATRA_ATTACH_MODE_MAX, "5"},
		{"attach_mode", UINT32_MAX, "4294967295"},
		{"edt_pacing", NATRA_EDT_PACING_MAX, "3"},
	};

	for (size_t i = 0; i < TH_LEN(rows); i++) {
		struct natra_policy p = policy_of(1000, 1000);
		const struct policy_field *field = policy_fields;

		while (strcmp(field->name, rows[i].field) != 0)
			field++;
		policy_field_set(field, &p, rows[i].value);
		assert_refused(&p, rows[i].field, rows[i].shown);
	}
}

TH_TEST(burst_without_a_rate_is_named)
{
	struct natra_policy p = policy_of(0, 1000);

	p.ingress_burst_bits = 5000;
	assert_refused(&p, "ingress_burst_bits", "5000");
	p = policy_of(1000, 0);
	p.egress_burst_bits = 5001;
	assert_refused(&p, "egress_burst_bits", "5001");
}

TH_TEST(bad_subnets_are_named)
{
	static const char *const one_bad[] = {"10.0.0.0/8", "10.0.0.0/33"};
	static const char *const missing[] = {"10.0.0.0/8", NULL};
	static const char *const two_lines[] = {"10.0.0.0/8\n"};
	struct natra_policy p = policy_of(1000, 1000);

	p.shaped_subnets = one_bad;
	p.shaped_subnets_len = 1;
	assert_accepted(&p);
	p.shaped_subnets_len = 2;
	assert_refused(&p,
		       "shaped_subnets: ", "'10.0.0.0/33' is not a CIDR block");
	p.shaped_subnets = missing;
	assert_refused(&p, "shaped_subnets: ", "''");
	p = policy_of(1000, 1000);
	p.unshaped_subnets = two_lines;
	p.unshaped_subnets_len = 1;
	assert_refused(&p, "unshaped_subnets: ", "10.0.0.0/8?");
	p.unshaped_subnets_len = NATRA_SUBNETS_MAX + 1;
	assert_refused(&p, "unshaped_subnets: ", "1025");
}

TH_TEST(lists_of_subnets_exclude_each_other)
{
	static const char *const blocks[] = {"10.0.0.0/8"};
	struct natra_policy p = policy_of(1000, 1000);

	p.shaped_subnets = blocks;
	p.shaped_subnets_len = 1;
	p.unshaped_subnets = blocks;
	assert_accepted(&p);
	p.unshaped_subnets_len = 1;
	assert_refused(&p, "shaped_subnets: ", "unshaped_subnets");
	/* natra_query returns a policy like this, with a number but without the
	 * list. */
	p.unshaped_subnets_len = 0;
	p.shaped_subnets = NULL;
	p.shaped_subnets_len = NATRA_SUBNETS_MAX;
	assert_accepted(&p);
}

TH_TEST(defaults_are_as_documented)
{
	struct natra_policy p = policy_of(10000000, 100000000), e;

	p.attach_mode = NATRA_ATTACH_MODE_TCX_PODSIDE;
	p.edt_pacing = NATRA_EDT_PACING_ON;
	e = policy_effective(&p);
	assert_int_equal(e.sz, sizeof(e));
	assert_int_equal(e.ingress_burst_bits, 5000000); /* 0.5 s */
	assert_int_equal(e.egress_burst_bits, 50000000);
	/* This is 0.1 s of the lower rate. */
	assert_int_equal(e.heavy_hitter_threshold_bytes, 125000);
	assert_int_equal(e.horizon_ns, 320 * MS); /* 4 MB at 100 Mbit/s */
	p.group[0] = 'g';                         /* which may be slower */
	assert_int_equal(policy_effective(&p).horizon_ns, 2 * SECOND);
	assert_int_equal(e.pace_limit_ns, 50 * MS);
	assert_int_equal(e.fast_pass_share_percent, 80);
	assert_int_equal(e.fast_pass, NATRA_FAST_PASS_FREE);
	assert_int_equal(e.ingress_mode, NATRA_INGRESS_MODE_POLICE);
	assert_int_equal(e.attach_mode, NATRA_ATTACH_MODE_TCX_PODSIDE);
	assert_int_equal(e.edt_pacing, NATRA_EDT_PACING_ON);
}

TH_TEST(burst_of_a_pacer_is_what_it_can_hold)
{
	struct natra_policy p = policy_of(10000000, 10000000), e;

	p.ingress_mode = NATRA_INGRESS_MODE_PACE;
	e = policy_effective(&p);
	assert_int_equal(e.ingress_burst_bits, 500000); /* 50 ms */
	assert_int_equal(e.egress_burst_bits, 5000000);
	p.pace_limit_ns = 20 * MS;
	assert_int_equal(policy_effective(&p).ingress_burst_bits, 200000);
	p.pace_limit_ns = 2 * SECOND;
	assert_int_equal(policy_effective(&p).ingress_burst_bits, 5000000);
	p.ingress_burst_bits = 1000000;
	assert_int_equal(policy_effective(&p).ingress_burst_bits, 1000000);
}

TH_TEST(what_is_set_is_kept)
{
	struct natra_policy p = policy_of(10000000, 20000000), e;

	p.ingress_burst_bits = 1;
	p.egress_burst_bits = 2;
	p.heavy_hitter_threshold_bytes = 3;
	p.horizon_ns = 4;
	p.pace_limit_ns = 5;
	p.fast_pass_share_percent = 6;
	p.fast_pass = NATRA_FAST_PASS_STRICT;
	p.ingress_packet_rate_per_sec = 8;
	p.ingress_mode = NATRA_INGRESS_MODE_PACE;
	p.group_weight = 2;
	e = policy_effective(&p);
	assert_memory_equal(&e, &p, sizeof(p));
}

TH_TEST(defaults_follow_the_only_limited_direction)
{
	struct natra_policy p = policy_of(0, 80000000);

	assert_int_equal(policy_effective(&p).heavy_hitter_threshold_bytes,
			 1000000);
	p = policy_of(40000000, 0);
	assert_int_equal(policy_effective(&p).heavy_hitter_threshold_bytes,
			 500000);
	/* The default burst of the fastest rate does not overflow. */
	p = policy_of(1000000000000000, 0);
	assert_int_equal(policy_effective(&p).ingress_burst_bits,
			 500000000000000);
}

TH_TEST(only_what_is_fixed_at_attach_is_shape)
{
	struct natra_policy a = policy_of(1000, 1000), b = policy_of(5000, 0);

	b.fast_pass = NATRA_FAST_PASS_OFF;
	b.horizon_ns = 5;
	assert_true(policy_same_shape(&a, &b));
	b.attach_mode = NATRA_ATTACH_MODE_TCX_PODSIDE;
	assert_false(policy_same_shape(&a, &b));
	b = a;
	b.edt_pacing = NATRA_EDT_PACING_OFF;
	assert_false(policy_same_shape(&a, &b));
	b = a;
	b.ingress_mode = NATRA_INGRESS_MODE_PACE;
	assert_false(policy_same_shape(&a, &b));
	b = a;
	b.sli = NATRA_SLI_ON;
	assert_false(policy_same_shape(&a, &b));
}

/* The header promises an error of at most 2^-21 of the exact ns per byte. */
static void assert_rate_exact(uint64_t bits_per_sec)
{
	const struct natra_rate rate = policy_rate(bits_per_sec, 1);
	const u128 exact_ns = (u128)8 * SECOND; /* per byte, times the rate */
	u128 got, want, difference;

	assert_true(rate.mult > 0 && rate.mult <= 8 * SECOND);
	assert_true(rate.shift < 64);
	/* This compares mult / 2^shift with 8e9 / rate without a division. */
	got = (u128)rate.mult * bits_per_sec;
	want = exact_ns << rate.shift;
	difference = got > want ? got - want : want - got;
	if (difference > want >> 21)
		fail_msg("%lu bit/s", (unsigned long)bits_per_sec);
}

TH_TEST(every_rate_of_the_runtimes_is_exact)
{
	static const uint64_t rates[] = {1,
					 800,
					 1000,
					 1500,
					 2500000,
					 10485760,
					 12500000,
					 1500000000,
					 4000000000,
					 5000000000,
					 40000000000,
					 1000000000000,
					 33333333333333,
					 1000000000000000,
					 999999999999999};

	for (size_t i = 0; i < TH_LEN(rates); i++)
		assert_rate_exact(rates[i]);
	for (uint64_t rate = 1; rate <= 1000000000000000; rate *= 10) {
		for (uint64_t digit = 1; digit <= 9 && rate < 1000000000000000;
		     digit++)
			assert_rate_exact(digit * rate + rate / 7);
	}
}

TH_TEST(burst_is_the_time_that_the_rate_takes_for_it)
{
	assert_int_equal(policy_rate(8000000, 1000).burst_ns, MS);
	assert_int_equal(policy_rate(1000, UINT64_MAX).burst_ns, INT64_MAX);
	assert_int_equal(
		policy_rate(1000000000000000, 125000000000000).burst_ns,
		SECOND);
	assert_int_equal(policy_rate(0, 1000).mult, 0);
	assert_int_equal(policy_rate(0, 1000).burst_ns, 0);
}

/* None of the derived numbers may be 0, which would mean "no limit" or
 * "default". */
TH_TEST(lowest_rates_have_numbers_of_their_own)
{
	static const uint64_t rates[] = {1, 7, 16, 159, 160, 800, 999};

	for (size_t i = 0; i < TH_LEN(rates); i++) {
		const struct natra_policy p = policy_of(rates[i], rates[i]);
		const struct natra_policy e = policy_effective(&p);
		const struct natra_limits l =
			policy_limits(&p, LEG_EGRESS, true);

		assert_true(e.ingress_burst_bits && e.egress_burst_bits);
		assert_true(e.heavy_hitter_threshold_bytes);
		assert_true(l.rate.mult && l.mice.mult);
		/* The threshold is one unit, so each flow is heavy from its
		 * first packet on. */
		assert_int_equal(l.enter_units, 1);
		assert_int_equal(l.leave_units, 1);
		assert_int_equal(policy_gso_segs(&p, true), 2);
		assert_int_equal(policy_gso_segs(&p, false), 2);
	}
}

TH_TEST(unlimited_direction_is_all_zero)
{
	const struct natra_limits zero = {0};
	struct natra_policy p = policy_of(0, 5000000);
	struct natra_limits l;

	p.heavy_hitter_threshold_bytes = 1000000;
	l = policy_limits(&p, LEG_INGRESS, false);
	assert_memory_equal(&l, &zero, sizeof(l));
	l = policy_limits(&p, LEG_HOST, true);
	assert_memory_equal(&l, &zero, sizeof(l));
	p = policy_of(5000000, 0);
	l = policy_limits(&p, LEG_EGRESS, true);
	assert_memory_equal(&l, &zero, sizeof(l));
}

TH_TEST(each_direction_has_its_own_numbers)
{
	const struct natra_policy p = policy_of(10000000, 80000000);
	struct natra_limits in = policy_limits(&p, LEG_INGRESS, false);
	struct natra_limits out = policy_limits(&p, LEG_EGRESS, false);

	assert_int_equal(natra_cost_ns(&in.rate, 1000, 0), 800000);
	assert_int_equal(natra_cost_ns(&out.rate, 1000, 0), 100000);
	assert_int_equal(in.rate.burst_ns, 500 * MS);
	assert_int_equal(out.rate.burst_ns, 500 * MS);
	assert_int_equal(in.enter_units, 125000 / 64);
	assert_int_equal(out.enter_units, 1000000 / 64);
	assert_int_equal(in.leave_units, in.enter_units / 8);
	/* Mice get 80 % of the rate, so the cost is higher. */
	assert_int_equal(natra_cost_ns(&in.mice, 1000, 0), 1000000);
	assert_int_equal(in.pass, NATRA_PASS_FREE);
}

TH_TEST(mice_have_a_short_burst_and_leave_a_reserve)
{
	struct natra_policy p = policy_of(10000000, 0);
	struct natra_limits l = policy_limits(&p, LEG_INGRESS, false);

	/* The mice's burst is a quarter of the burst at four fifths of the
	 * rate. */
	assert_in_range(l.mice.burst_ns, 156 * MS, 157 * MS);
	assert_int_equal(l.reserve_ns, l.rate.burst_ns / 8);
	/* The data path subtracts the reserve from the burst. */
	p.ingress_burst_bits = 1;
	l = policy_limits(&p, LEG_INGRESS, false);
	assert_true(l.reserve_ns <= l.rate.burst_ns);
	p.ingress_burst_bits = UINT64_MAX;
	l = policy_limits(&p, LEG_INGRESS, false);
	assert_int_equal(l.reserve_ns, SECOND);
}

TH_TEST(fast_pass_is_the_data_paths_own)
{
	static const uint32_t want[] = {
		[NATRA_FAST_PASS_FREE] = NATRA_PASS_FREE,
		[NATRA_FAST_PASS_STRICT] = NATRA_PASS_STRICT,
		[NATRA_FAST_PASS_OFF] = NATRA_PASS_OFF,
	};
	struct natra_policy p = policy_of(10000000, 0);

	for (unsigned int i = 0; i < NATRA_FAST_PASS_MAX; i++) {
		p.fast_pass = (enum natra_fast_pass)i;
		assert_int_equal(policy_limits(&p, LEG_INGRESS, false).pass,
				 want[i]);
	}
}

/* Returns by how much more than the judge the backstop has, in ms. */
static uint64_t room_ms(const struct natra_policy *p, bool paced)
{
	const struct natra_limits judge = policy_limits(p, LEG_HOST, paced);
	const struct natra_limits backstop = policy_backstop(p);

	assert_int_equal(backstop.rate.mult, judge.rate.mult);
	assert_int_equal(backstop.rate.shift, judge.rate.shift);
	assert_int_equal(backstop.pass, judge.pass);
	assert_int_equal(backstop.enter_units, judge.enter_units * 2);
	assert_int_equal(backstop.leave_units, backstop.enter_units / 8);
	/* Nothing is dropped by chance while 1/32 of a burst is left. */
	return (backstop.rate.burst_ns - backstop.rate.burst_ns / 32 -
		judge.rate.burst_ns) /
	       MS;
}

TH_TEST(backstop_has_room_for_all_that_is_passed)
{
	struct natra_policy p = policy_of(10000000, 0);

	/* The overdraft of 3 * 2^26 ns, that of marks (64 kB), the longest packet (128 kB) and
	 * 50 ms on the way; and a part of it all. */
	assert_in_range(room_ms(&p, false), 201 + 52 + 104 + 50, 440);
	/* What is held may wait for 50 ms, and the unit is that of held packets. */
	p.ingress_mode = NATRA_INGRESS_MODE_PACE;
	assert_in_range(room_ms(&p, true), 101 + 50 + 104 + 50 + 50, 380);
	/* Small flows may go before all others. */
	p.fast_pass = NATRA_FAST_PASS_STRICT;
	assert_true(room_ms(&p, true) > 380);
	p.heavy_hitter_threshold_bytes = UINT64_MAX;
	assert_int_equal(policy_backstop(&p).enter_units, (1 << 24) - 1);
	p = policy_of(1, 0);
	p.ingress_burst_bits = UINT64_MAX;
	assert_int_equal(policy_backstop(&p).rate.burst_ns, INT64_MAX);
}

TH_TEST(threshold_is_within_what_a_cell_can_count)
{
	struct natra_policy p = policy_of(1000000000000000, 0);
	struct natra_limits l = policy_limits(&p, LEG_INGRESS, false);

	assert_int_equal(l.enter_units, (1 << 24) - 1);
	p = policy_of(1000, 0);
	l = policy_limits(&p, LEG_INGRESS, false);
	assert_int_equal(l.enter_units, 1);
	assert_int_equal(l.leave_units, 1);
	p.heavy_hitter_threshold_bytes = 64 * 80;
	l = policy_limits(&p, LEG_INGRESS, false);
	assert_int_equal(l.enter_units, 80);
	assert_int_equal(l.leave_units, 10);
}

TH_TEST(smallest_share_of_the_smallest_rate_is_a_limit)
{
	struct natra_policy p = policy_of(1000, 0);
	struct natra_limits l;

	p.fast_pass = NATRA_FAST_PASS_STRICT;
	p.fast_pass_share_percent = 1;
	l = policy_limits(&p, LEG_INGRESS, false);
	assert_int_equal(natra_cost_ns(&l.mice, 1, 0), 800 * MS);
	p.fast_pass_share_percent = 100;
	l = policy_limits(&p, LEG_INGRESS, false);
	assert_int_equal(l.mice.mult, l.rate.mult);
	assert_int_equal(l.mice_mult, l.rate.mult);
}

/* Over the rate the share is a ceiling, and all of it together is charged as four fifths of
 * the rate. */
TH_TEST(share_over_the_rate_leaves_a_fifth)
{
	struct natra_policy p = policy_of(10000000, 0);
	struct natra_limits l;

	p.fast_pass = NATRA_FAST_PASS_STRICT;
	for (uint32_t percent = 101; percent <= 1000; percent++) {
		p.fast_pass_share_percent = percent;
		l = policy_limits(&p, LEG_INGRESS, false);
		assert_int_equal(natra_cost_ns(&l.mice, 1000000, 0) / 1000,
				 80000000 / percent);
		/* In percent of what the same bytes take at the ceiling. */
		assert_in_range(l.mice_mult * percent, l.rate.mult * 80 - 1000,
				l.rate.mult * 80);
		assert_int_equal(natra_cost_ns(&l.rate, 1000, 0), 800000);
	}
}

TH_TEST(gso_packets_take_five_ms_at_most)
{
	static const struct {
		uint64_t rate;
		uint32_t segs;
	} cases[] = {
		{0, 0},
		{1000, 2},
		{7267199, 2},
		{7267200, 3},
		{10000000, 4},
		{100000000, 41},
		{104857599, 43},
		{104857600, 0},
		{NATRA_RATE_MAX_BITS_PER_SEC, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct natra_policy p = policy_of(1000000, cases[i].rate);

		assert_int_equal(policy_gso_segs(&p, true), cases[i].segs);
		p.egress_rate_bits_per_sec /= 200;
		assert_int_equal(policy_gso_segs(&p, false), cases[i].segs);
	}
}

TH_MAIN(NULL, NULL)
