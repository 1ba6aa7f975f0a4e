/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests check how members share a group (natra_groups.h), on a simulated clock. A
 * source sends at a rate whatever becomes of it, or as fast as its packets leave, as a
 * local TCP does where fq holds them.
 */
#include "cm.h"

#include "natra_groups.h"
#include "policy/group_limits.h"
#include "policy/policy.h"
#include "policy_of.h"

#define MBIT     1000000ULL
#define BYTES    1514
#define DELAY_NS (300 * MS)
#define MEMBERS  3
#define BEGIN_NS (1000 * SECOND)

struct source {
	uint64_t rate_bits; /* 0: as fast as its packets leave */
	uint32_t weight;
	uint64_t floor_bits;
	uint64_t from_ns, to_ns; /* since the beginning; to_ns 0: for ever */
	uint64_t burst_bytes, period_ns; /* not 0: so many at once, and again */
	uint64_t delay_ns; /* the longest of its packets; 0: the group's */
	bool mice;         /* small flows that are charged */

	struct natra_membership of;
	struct natra_member member;
	uint64_t next_ns, passed_bytes, latest_ns, burst_ns, sent_bytes;
	uint64_t held; /* packets that had to wait, or were dropped */
	uint64_t reordered;
};

struct sim {
	struct natra_group group, parent;
	struct source *sources;
	size_t len;
	uint64_t now_ns, seed;
	bool held;
	uint64_t delay_ns; /* the longest that fq holds a packet; 0: policed */
};

static struct natra_group_given group_of(uint64_t rate_bits)
{
	return (struct natra_group_given){
		.name = "g",
		.rate_bits_per_sec = {rate_bits, rate_bits},
	};
}

static void begin(struct sim *sim, uint64_t rate_bits, bool held,
		  struct source *sources, size_t len)
{
	const struct natra_group_given given = group_of(rate_bits);

	*sim = (struct sim){.sources = sources, .len = len, .held = held};
	sim->delay_ns = held ? DELAY_NS : 0;
	sim->now_ns = BEGIN_NS;
	sim->seed = 1;
	sim->group.limits[0] = group_limits(&given, NULL, true);
	for (size_t i = 0; i < len; i++) {
		struct natra_policy p = policy_of(0, 1000 * MBIT);

		p.group[0] = 'g';
		p.group_weight = sources[i].weight;
		p.group_floor_bits_per_sec = sources[i].floor_bits;
		sources[i].of = policy_limits(&p, LEG_EGRESS, held).member;
		sources[i].next_ns = BEGIN_NS + sources[i].from_ns + i;
	}
}

static uint32_t random32(struct sim *sim)
{
	sim->seed = sim->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(sim->seed >> 32);
}

/* Judges a packet by one group, as group_level does. */
static uint64_t judge(struct sim *sim, struct natra_group *group,
		      const struct natra_membership *of,
		      struct natra_member *member, bool charge, bool mouse,
		      uint32_t id)
{
	const struct natra_group_limits *l = natra_group_limits_of(group);
	const uint64_t delay_ns = sim->delay_ns;
	const uint64_t cost_ns = natra_cost_ns(&l->rate, BYTES, 0);
	const struct natra_member seen = natra_group_clocks(member);
	uint64_t turn_ns;

	if (sim->now_ns >> NATRA_FAIR_TICK_SHIFT != group->fair.tick)
		natra_fair_adapt(
			&group->fair, sim->now_ns,
			natra_group_latest(group, l, sim->now_ns, delay_ns),
			natra_group_shift(l, delay_ns), natra_group_weight(of));
	if (!charge) {
		turn_ns = natra_group_judge(group, l, of, member, id,
					    sim->now_ns, delay_ns, mouse);
	} else {
		turn_ns = natra_group_turn(group, l, of, member, sim->now_ns,
					   delay_ns);
		natra_group_charge_member(
			group, l, of, member, &seen, sim->now_ns, delay_ns,
			turn_ns, cost_ns, natra_cost_ns(&of->floor, BYTES, 0));
		natra_group_charge(group, l, sim->now_ns,
				   natra_group_ahead(delay_ns, mouse), turn_ns,
				   cost_ns, BYTES);
		natra_group_meet(group, id, sim->now_ns);
	}
	return sim->held ? turn_ns
			 : natra_group_to_scale(l, sim->now_ns, turn_ns);
}

static uint64_t judge_all(struct sim *sim, struct source *s, bool charge)
{
	const struct natra_group_limits *l = natra_group_limits_of(&sim->group);
	uint64_t turn_ns = judge(sim, &sim->group, &s->of, &s->member, charge,
				 s->mice, (uint32_t)(s - sim->sources) + 1);

	if (l->parent.group) {
		uint64_t upper_ns =
			judge(sim, &sim->parent, &l->parent, &sim->group.member,
			      charge, s->mice, 1);

		if (upper_ns > turn_ns)
			turn_ns = upper_ns;
	}
	return turn_ns;
}

/* Returns whether a packet with this turn is dropped. */
static bool is_dropped(struct sim *sim, const struct source *s,
		       uint64_t turn_ns)
{
	const struct natra_policy p = policy_of(0, 1000 * MBIT);
	const struct natra_limits l = policy_limits(&p, LEG_EGRESS, false);
	uint64_t chance;

	if (sim->held)
		return turn_ns > sim->now_ns + (s->delay_ns ? s->delay_ns
							    : sim->delay_ns);
	turn_ns = natra_group_from_scale(l.rate.burst_ns, sim->now_ns, turn_ns);
	chance = natra_fair_chance(&l, sim->now_ns, turn_ns);
	return chance && random32(sim) < chance;
}

static void send_one(struct sim *sim, struct source *s)
{
	const uint64_t turn_ns = judge_all(sim, s, false);
	const bool dropped =
		s->mice ? natra_group_refuses(sim->now_ns, sim->delay_ns,
					      turn_ns)
			: is_dropped(sim, s, turn_ns);
	const uint64_t depart_ns =
		turn_ns > sim->now_ns ? turn_ns : sim->now_ns;

	s->held += dropped || depart_ns > sim->now_ns;
	if (!dropped) {
		judge_all(sim, s, true);
		s->passed_bytes += BYTES;
		s->reordered += depart_ns < s->latest_ns;
		s->latest_ns = depart_ns;
	}
	s->sent_bytes += BYTES;
	if (s->burst_bytes && s->sent_bytes % s->burst_bytes < BYTES) {
		s->burst_ns += s->period_ns;
		s->next_ns = BEGIN_NS + s->from_ns + s->burst_ns;
	} else if (s->burst_bytes)
		s->next_ns += 100;
	else if (s->rate_bits)
		s->next_ns += BYTES * 8 * SECOND / s->rate_bits;
	else
		s->next_ns = (dropped ? sim->now_ns + MS : depart_ns) + 1000;
	if (s->to_ns && s->next_ns > BEGIN_NS + s->to_ns)
		s->next_ns = UINT64_MAX;
}

/* Runs until then since the beginning, with new results. */
static void run(struct sim *sim, uint64_t until_ns)
{
	for (size_t i = 0; i < sim->len; i++) {
		sim->sources[i].passed_bytes = 0;
		sim->sources[i].held = 0;
	}
	for (;;) {
		struct source *next = &sim->sources[0];

		for (size_t i = 1; i < sim->len; i++) {
			if (sim->sources[i].next_ns < next->next_ns)
				next = &sim->sources[i];
		}
		if (next->next_ns >= BEGIN_NS + until_ns)
			return;
		if (next->next_ns > sim->now_ns)
			sim->now_ns = next->next_ns;
		send_one(sim, next);
	}
}

static double mbits(const struct source *s, double seconds)
{
	return (double)s->passed_bytes * 8 / 1e6 / seconds;
}

static double sum(const struct sim *sim, double seconds)
{
	double all = 0;

	for (size_t i = 0; i < sim->len; i++)
		all += mbits(&sim->sources[i], seconds);
	return all;
}

static void assert_about(double value, double wanted, double part)
{
	if (value < wanted * (1 - part) || value > wanted * (1 + part))
		fail_msg("%.2f is not %.2f +- %.0f %%", value, wanted,
			 part * 100);
}

static void assert_least(double value, double least)
{
	if (value < least)
		fail_msg("%.2f is under %.2f", value, least);
}

static void assert_most(double value, double most)
{
	if (value > most)
		fail_msg("%.2f is over %.2f", value, most);
}

TH_TEST(members_share_by_weight)
{
	struct source s[MEMBERS] = {
		{.weight = 1}, {.weight = 2}, {.weight = 1}};
	struct sim sim;

	begin(&sim, 100 * MBIT, true, s, MEMBERS);
	run(&sim, 3 * SECOND);
	run(&sim, 6 * SECOND);
	assert_about(mbits(&s[0], 3), 25, 0.03);
	assert_about(mbits(&s[1], 3), 50, 0.03);
	assert_about(mbits(&s[2], 3), 25, 0.03);
	assert_about(sum(&sim, 3), 100, 0.01);
	for (size_t i = 0; i < MEMBERS; i++)
		assert_int_equal(s[i].reordered, 0);
}

/* Each member is in turn the one that floods. */
static void floors_hold(bool held, double most)
{
	for (size_t flood = 0; flood < MEMBERS; flood++) {
		struct source s[MEMBERS] = {
			{.weight = 1, .floor_bits = 20 * MBIT},
			{.weight = 2, .floor_bits = 30 * MBIT},
			{.weight = 1, .floor_bits = 40 * MBIT}};
		struct sim sim;

		for (size_t i = 0; i < MEMBERS && !held; i++)
			s[i].rate_bits = 60 * MBIT;
		s[flood].rate_bits = 300 * MBIT;
		begin(&sim, 100 * MBIT, held, s, MEMBERS);
		/* What floods overdraw before K is found is paid back until
		 * then: floors leave little for it. */
		run(&sim, 6 * SECOND);
		run(&sim, 10 * SECOND);
		for (size_t i = 0; i < MEMBERS; i++) {
			assert_least(mbits(&s[i], 4),
				     0.95 * (double)s[i].floor_bits / 1e6);
			assert_int_equal(s[i].reordered, 0);
		}
		assert_most(sum(&sim, 4), most);
		assert_least(sum(&sim, 4), 97);
	}
}

TH_TEST(floors_hold_beside_a_flood_that_is_held)
{
	floors_hold(true, 102);
}

TH_TEST(floors_hold_beside_a_flood_that_is_policed)
{
	floors_hold(false, 105);
}

/* Floors may add up to all of the group. */
TH_TEST(floors_of_the_whole_rate_hold)
{
	struct source s[MEMBERS] = {
		{.rate_bits = 300 * MBIT, .floor_bits = 50 * MBIT},
		{.rate_bits = 300 * MBIT, .floor_bits = 50 * MBIT},
		{.rate_bits = 300 * MBIT}};
	struct sim sim;

	begin(&sim, 100 * MBIT, true, s, MEMBERS);
	run(&sim, 3 * SECOND);
	run(&sim, 7 * SECOND);
	assert_least(mbits(&s[0], 4), 0.95 * 50);
	assert_least(mbits(&s[1], 4), 0.95 * 50);
	assert_most(sum(&sim, 4), 102);
}

TH_TEST(nobody_within_its_floor_waits)
{
	struct source s[MEMBERS] = {
		{.rate_bits = 19 * MBIT, .floor_bits = 20 * MBIT},
		{.rate_bits = 300 * MBIT},
		{.rate_bits = 300 * MBIT, .weight = 64}};
	struct sim sim;

	begin(&sim, 100 * MBIT, true, s, MEMBERS);
	run(&sim, 6 * SECOND);
	assert_int_equal(s[0].held, 0);
	assert_about(mbits(&s[0], 6), 19, 0.01);
}

/* The same without a floor, once K is found. */
TH_TEST(nobody_within_its_share_waits)
{
	struct source s[MEMBERS] = {{.rate_bits = 25 * MBIT},
				    {.rate_bits = 300 * MBIT},
				    {.rate_bits = 300 * MBIT}};
	struct sim sim;

	begin(&sim, 100 * MBIT, true, s, MEMBERS);
	run(&sim, 4 * SECOND);
	run(&sim, 8 * SECOND);
	assert_about(mbits(&s[0], 4), 25, 0.01);
	assert_most((double)s[0].held, 0.02 * 4 * 25e6 / 8 / BYTES);
}

/* Mice go ahead of their turn, but their member has no more than its weight in the end. */
TH_TEST(mice_of_a_member_have_its_share)
{
	static const uint64_t rates[] = {2 * MBIT, 20 * MBIT, 100 * MBIT};

	for (size_t i = 0; i < 2 * TH_LEN(rates); i++) {
		const uint64_t rate = rates[i / 2];
		const double part = (double)rate / 5e6;
		struct source s[] = {
			{.rate_bits = 5 * rate, .weight = 1, .mice = true},
			{.rate_bits = 2 * rate, .weight = 4}};
		struct sim sim;

		begin(&sim, rate, i % 2, s, TH_LEN(s));
		run(&sim, 8 * SECOND);
		run(&sim, 20 * SECOND);
		assert_about(mbits(&s[0], 12), part, 0.05);
		assert_about(mbits(&s[1], 12), 4 * part, 0.05);
	}
}

/* What is idle is borrowed within a second, and given back within one. */
TH_TEST(idle_share_is_borrowed_and_given_back)
{
	struct source s[MEMBERS] = {{.weight = 1, .floor_bits = 20 * MBIT},
				    {.weight = 2, .floor_bits = 30 * MBIT},
				    {.weight = 1,
				     .floor_bits = 40 * MBIT,
				     .from_ns = 4 * SECOND,
				     .to_ns = 8 * SECOND}};
	struct sim sim;

	begin(&sim, 100 * MBIT, true, s, MEMBERS);
	run(&sim, 3 * SECOND);
	run(&sim, 4 * SECOND);
	assert_about(mbits(&s[0], 1), 33.3, 0.05);
	assert_about(mbits(&s[1], 1), 66.7, 0.05);
	run(&sim, 5 * SECOND);
	run(&sim, 6 * SECOND);
	assert_least(mbits(&s[2], 1), 0.95 * 40);
	assert_about(mbits(&s[0], 1), 20, 0.1);
	assert_about(mbits(&s[1], 1), 40, 0.1);
	run(&sim, 9 * SECOND);
	run(&sim, 10 * SECOND);
	assert_about(mbits(&s[0], 1), 33.3, 0.1);
	assert_about(mbits(&s[1], 1), 66.7, 0.1);
	assert_about(sum(&sim, 1), 100, 0.02);
}

/* A group that is a member of another one is held by both. */
TH_TEST(parent_holds_its_groups)
{
	struct source s[MEMBERS] = {
		{.weight = 1}, {.weight = 2}, {.weight = 1}};
	const struct natra_group_given parent = group_of(60 * MBIT);
	struct natra_group_given given = group_of(100 * MBIT);
	struct sim sim;

	given.parent = 2;
	begin(&sim, 100 * MBIT, true, s, MEMBERS);
	sim.group.limits[0] = group_limits(&given, &parent, true);
	sim.parent.limits[0] = group_limits(&parent, NULL, true);
	assert_int_equal(sim.group.limits[0].parent.group, 4);
	/* A tenth of a second of the lesser rate, in units of 64 bytes. */
	assert_int_equal(sim.group.limits[0].enter_units, 750000 / 64);
	run(&sim, 3 * SECOND);
	run(&sim, 6 * SECOND);
	assert_about(sum(&sim, 3), 60, 0.01);
}

/* A clock from a time when the group was much slower is not waited for. */
TH_TEST(stale_clocks_mean_nothing)
{
	struct source s[MEMBERS] = {
		{.rate_bits = 30 * MBIT},
		{.rate_bits = 300 * MBIT},
		{.rate_bits = 9 * MBIT, .weight = 1, .floor_bits = 10 * MBIT}};
	struct sim sim;

	begin(&sim, 100 * MBIT, true, s, MEMBERS);
	s[0].member.clock_ns = BEGIN_NS + 3600 * SECOND;
	s[2].member.floor_ns = BEGIN_NS + 3600 * SECOND;
	s[2].member.clock_ns = BEGIN_NS + 3600 * SECOND;
	s[2].of.share = 1 << 8;
	run(&sim, 4 * SECOND);
	run(&sim, 6 * SECOND);
	/* Neither waits within its share, or its floor. */
	assert_most((double)s[0].held, 0.02 * 2 * 30e6 / 8 / BYTES);
	assert_most((double)s[2].held, 0.02 * 2 * 9e6 / 8 / BYTES);
}

/* Packets of two CPUs that have found the same turn are both charged. */
TH_TEST(no_charge_of_another_cpu_is_lost)
{
	const uint64_t hour_ns = 3600 * SECOND;
	/* Before now, ahead of it, and stale. */
	static const uint64_t clocks[] = {0, BEGIN_NS + MS,
					  BEGIN_NS + 3600 * SECOND};
	struct source s = {.weight = 1, .floor_bits = 10 * MBIT};
	struct sim sim;

	for (size_t i = 0; i < TH_LEN(clocks); i++) {
		const struct natra_group_limits *l;
		struct natra_member seen, *member = &s.member;
		uint64_t turn_ns;

		begin(&sim, 100 * MBIT, true, &s, 1);
		l = natra_group_limits_of(&sim.group);
		sim.group.fair.tat_ns = BEGIN_NS + 2 * hour_ns;
		sim.group.fair.latest_ns = BEGIN_NS + 2 * hour_ns;
		*member = (struct natra_member){clocks[i], clocks[i]};
		seen = natra_group_clocks(member);
		turn_ns = natra_group_turn(&sim.group, l, &s.of, &seen,
					   BEGIN_NS, DELAY_NS);
		for (int cpu = 0; cpu < 2; cpu++)
			natra_group_charge_member(&sim.group, l, &s.of, member,
						  &seen, BEGIN_NS, DELAY_NS,
						  turn_ns, MS, 3 * MS);
		assert_int_equal(member->clock_ns,
				 turn_ns +
					 2 * natra_group_weigh(MS, s.of.share));
		assert_int_equal(member->floor_ns, turn_ns + 6 * MS);
	}
}

/* What a member owes for a packet of BIG TCP is no stale clock, at any rate. */
TH_TEST(long_packet_is_not_forgotten)
{
	for (uint64_t rate = MBIT; rate <= 10000 * MBIT; rate *= 10) {
		struct source s = {.weight = 1, .floor_bits = rate / 2};
		const struct natra_group_limits *l;
		struct sim sim;
		uint64_t cost_ns;

		begin(&sim, rate, false, &s, 1);
		l = natra_group_limits_of(&sim.group);
		sim.group.fair.k_more = 7 * NATRA_FAIR_K_ONE;
		cost_ns = natra_cost_ns(&l->rate, 548000, 0);
		assert_true(natra_group_stale(&sim.group, l, BEGIN_NS, 0) >
			    BEGIN_NS + 8 * cost_ns);
		assert_true(natra_group_floor_stale(&s.of, BEGIN_NS, 0) >
			    BEGIN_NS + 2 * cost_ns);
	}
}

/* The turn of a packet that goes before it is not the latest one. */
TH_TEST(turn_to_come_is_not_the_latest)
{
	static const uint64_t delays[] = {0, 50 * MS};
	const struct natra_group_given given = group_of(10 * MBIT);
	const struct natra_group_limits l = group_limits(&given, NULL, true);

	for (size_t i = 0; i < 2; i++) {
		struct natra_group group = {0};

		natra_group_charge(&group, &l, BEGIN_NS, delays[i],
				   BEGIN_NS - 1, MS, 1514);
		assert_int_equal(group.fair.latest_ns, BEGIN_NS - 1);
		natra_group_charge(&group, &l, BEGIN_NS, delays[i],
				   BEGIN_NS + 60 * MS, MS, 1514);
		assert_int_equal(group.fair.latest_ns, BEGIN_NS + delays[i]);
	}
}

/* A direction without a rate has none. */
TH_TEST(floors_are_of_rates)
{
	struct natra_group_given given = group_of(100 * MBIT), parent = given;

	given.parent = 2;
	given.floor_bits_per_sec = 50 * MBIT;
	given.rate_bits_per_sec[0] = 0;
	assert_int_equal(group_limits(&given, &parent, false).parent.floor.mult,
			 0);
	assert_int_not_equal(
		group_limits(&given, &parent, true).parent.floor.mult, 0);
}

TH_TEST(scales_agree)
{
	const struct natra_group_given given = group_of(100 * MBIT);
	const struct natra_group_limits l = group_limits(&given, NULL, false);
	const uint64_t now_ns = BEGIN_NS, burst_ns = l.rate.burst_ns;
	uint64_t scaled;

	assert_int_equal(natra_group_to_scale(&l, now_ns, now_ns + 5),
			 now_ns + 5);
	assert_int_equal(natra_group_from_scale(1, now_ns, now_ns + 5),
			 now_ns + 5);
	assert_int_equal(
		natra_group_to_scale(&l, now_ns, now_ns - burst_ns / 32), 0);
	assert_int_equal(natra_group_from_scale(burst_ns, now_ns, 0), 0);
	scaled = natra_group_to_scale(&l, now_ns, now_ns - burst_ns / 100);
	assert_in_range(natra_group_from_scale(SECOND, now_ns, scaled),
			now_ns - SECOND / 100 - MS / 100,
			now_ns - SECOND / 100 + MS / 100);
	assert_int_equal(natra_group_from_scale(1ULL << 50, 1ULL << 60,
						(1ULL << 60) - (1ULL << 31)),
			 (1ULL << 60) - (1ULL << 49));
}

/* A member that sends what the group carries in two seconds at once leaves the others their shares: one
 * that has one packet on the way at a time, and one whose packets may wait for 50 ms. */
TH_TEST(future_is_not_for_sale)
{
	static const uint64_t shares[] = {50, 25};

	for (size_t i = 0; i < 2; i++) {
		const size_t len = 100 / shares[i];
		struct source s[4] = {{.rate_bits = i ? shares[i] * MBIT : 0,
				       .delay_ns = i ? 50 * MS : 0}};
		struct sim sim;

		for (size_t j = 1; j < len; j++) {
			s[j].burst_bytes = 100 * MBIT / 8 * 19 / 10;
			s[j].period_ns = 19 * SECOND / 10;
		}
		begin(&sim, 100 * MBIT, true, s, len);
		sim.delay_ns = 2 * SECOND;
		run(&sim, 6 * SECOND);
		run(&sim, 25 * SECOND);
		assert_least(mbits(&s[0], 19), 0.75 * (double)shares[i]);
		assert_most(sum(&sim, 19), 101);
	}
}

/* A member that is alone may fill fq. Another one that comes waits for that in its turn, and from then
 * on the first one holds no more than the bound of the overdraft, until it is alone again. */
TH_TEST(lone_member_waits_as_long_as_it_may)
{
	struct source s[] = {{.rate_bits = 150 * MBIT},
			     {.rate_bits = 20 * MBIT,
			      .from_ns = 10 * SECOND,
			      .to_ns = 14 * SECOND}};
	struct sim sim;

	begin(&sim, 100 * MBIT, true, s, 2);
	sim.delay_ns = 2 * SECOND;
	run(&sim, 10 * SECOND);
	assert_in_range(s[0].latest_ns - sim.now_ns, 1900 * MS, 2 * SECOND);
	run(&sim, 12 * SECOND);
	assert_about(mbits(&s[1], 2), 20, 0.05);
	run(&sim, 20 * SECOND);
	assert_in_range(s[0].latest_ns - sim.now_ns, 0, 110 * MS);
	run(&sim, 45 * SECOND);
	assert_in_range(s[0].latest_ns - sim.now_ns, 1900 * MS, 2 * SECOND);
}

/* A member within its share passes also where the weights sum up to more than 256. */
TH_TEST(large_weights_share)
{
	for (int held = 0; held < 2; held++) {
		const struct source f = {.rate_bits = 300 * MBIT, .weight = 64};
		struct source s[] = {f, f, f, f, f};
		struct sim sim;

		s[0].rate_bits = 10 * MBIT;
		begin(&sim, 100 * MBIT, held, s, TH_LEN(s));
		run(&sim, 9 * SECOND);
		run(&sim, 15 * SECOND);
		assert_about(mbits(&s[0], 6), 10, 0.02);
		assert_about(sum(&sim, 6), 100, 0.03);
	}
}

TH_MAIN(NULL, NULL)
