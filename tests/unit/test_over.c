/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check from when on small flows that are free exceed the limit: once, with the
 * factor of a whole window, and never in a burst. */
#include "cm.h"

#include "natra_over.h"
#include "policy/group_limits.h"
#include "policy_of.h"

#define WINDOW (1ULL << NATRA_WINDOW_SHIFT)
#define RATE   10000000ULL

static struct natra_over over;
static struct natra_limits limits, before;
static uint64_t active, now_ns, passed;

static int begin(void **state)
{
	const struct natra_policy policy = policy_of(0, RATE);

	limits = before = policy_limits(&policy, LEG_EGRESS, true);
	active = 1;
	over = (struct natra_over){0};
	now_ns = 1000 * WINDOW;
	passed = 123456;
	return 0;
}

/* Lets a window pass with this percent of the limit. Returns what is told. */
static uint32_t window_with(uint64_t percent)
{
	__u64 since_ns, other_ns;

	now_ns += WINDOW;
	passed += RATE / 8 * WINDOW / 1000000000 * percent / 100;
	assert_true(natra_over_take(&over, now_ns, &since_ns));
	assert_false(natra_over_take(&over, now_ns, &other_ns));
	return natra_over_judge(&over, &limits.over, &before.over,
				(uint16_t)active, passed, since_ns, now_ns);
}

static uint32_t told_of(uint64_t percent, int windows)
{
	uint32_t told = 0;

	for (int i = 0; i < windows; i++) {
		const uint32_t now = window_with(percent);

		assert_true(!now || !told);
		told += now;
	}
	return told;
}

TH_TEST(a_flood_is_told_once_with_its_factor)
{
	static const uint32_t floods[] = {130, 200, 3720, 100000};

	for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++) {
		(void)begin(state);
		assert_int_equal(told_of(100, 5), 0);
		/* It began in the middle of a window. */
		assert_int_equal(window_with(floods[i] / 2), 0);
		assert_in_range(told_of(floods[i], 60), floods[i] - 1,
				floods[i] + 1);
		assert_in_range(over.percent, floods[i] - 1, floods[i] + 1);
		assert_int_equal(over.over_ns, now_ns);
	}
}

TH_TEST(it_is_told_again_when_it_comes_again)
{
	(void)window_with(0);
	assert_int_not_equal(told_of(3720, 600), 0);
	/* However long it was, it ends in a few windows. */
	assert_int_equal(told_of(50, 10), 0);
	assert_int_not_equal(told_of(300, 10), 0);
}

/* Half a second of the rate at once, what the horizon holds, and a second of small flows. */
TH_TEST(a_burst_is_not_told)
{
	(void)window_with(0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(window_with(200), 0);
		assert_int_equal(window_with(180), 0);
		assert_int_equal(told_of(20, 3), 0);
	}
	assert_int_equal(over.over_ns, 0);
}

TH_TEST(a_few_percent_are_not_told)
{
	assert_int_equal(told_of(110, 1000), 0);
}

/* Where the limit was lowered within a window, what passed at the higher one is no debt. */
TH_TEST(what_passed_at_a_higher_limit_is_not_told)
{
	const struct natra_policy policy = policy_of(0, 100 * RATE);

	before = policy_limits(&policy, LEG_EGRESS, true);
	(void)window_with(0);
	over.debt = before.over.debt;
	active++;
	assert_int_equal(window_with(5000), 0);
	before = limits;
	assert_int_equal(told_of(110, 20), 0);
}

/* Returns how many windows of a flood pass until it is told, with an edit in each or without. */
static int windows_until_told(uint32_t percent, bool edits)
{
	uint32_t told = 0;
	int windows = 0;

	begin(NULL);
	(void)window_with(0);
	while (!told && windows < 100) {
		before = limits;
		limits.over.rate -= edits;
		active += edits;
		told = window_with(percent);
		windows++;
	}
	assert_in_range(told, percent - 1, percent + 1);
	return windows;
}

TH_TEST(who_changes_the_limit_does_not_hide_a_flood)
{
	static const uint32_t floods[] = {130, 150, 400};

	for (size_t i = 0; i < sizeof(floods) / sizeof(floods[0]); i++)
		assert_int_equal(windows_until_told(floods[i], true),
				 windows_until_told(floods[i], false));
}

TH_TEST(what_passed_in_a_pause_does_not_count)
{
	__u64 since_ns;

	(void)window_with(0);
	(void)window_with(5000);
	active++;
	now_ns += 100 * WINDOW;
	assert_true(natra_over_take(&over, now_ns, &since_ns));
	assert_int_equal(natra_over_judge(&over, &limits.over, &before.over,
					  (uint16_t)active, passed * 99,
					  since_ns, now_ns),
			 0);
	assert_int_equal(over.debt, 0);
	assert_int_equal(over.active, active);
}

/* Lets so many bytes pass in each 60 windows, until that is told. Returns the percentage that
 * is told, or 0. */
static uint32_t pass_until_told(struct natra_over *of, uint64_t *sum,
				uint64_t bytes, uint64_t from, uint64_t until)
{
	uint32_t told = 0;

	for (uint64_t n = from; n < until && !told; n++) {
		__u64 since_ns;

		*sum += bytes;
		assert_true(natra_over_take(of, n * 60 * WINDOW, &since_ns));
		told = natra_over_judge(of, &limits.over, &before.over, 0, *sum,
					since_ns, n * 60 * WINDOW);
	}
	return told;
}

TH_TEST(any_rate_can_be_exceeded)
{
	static const uint64_t rates[] = {1, 1000, NATRA_RATE_MAX_BITS_PER_SEC};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		struct natra_policy policy = policy_of(0, rates[i]);
		uint64_t sum = 0;

		policy.egress_burst_bits = i == 2 ? UINT64_MAX / 2 : 0;
		limits = policy_limits(&policy, LEG_EGRESS, false);
		assert_true(limits.over.rate > 0);
		over = (struct natra_over){0};
		/* 50 seconds of it in 64 */
		assert_int_equal(pass_until_told(&over, &sum,
						 50 * (rates[i] / 8 + 1), 1,
						 3000),
				 0);
		limits.over.debt = 0;
		assert_in_range(pass_until_told(&over, &sum,
						200 * (rates[i] / 8 + 1), 3000,
						3010),
				300, UINT32_MAX);
	}
}

/* It sees the packets that the host side has passed. */
TH_TEST(the_backstop_tells_nothing)
{
	const struct natra_policy policy = policy_of(RATE, 0);

	assert_int_equal(policy_backstop(&policy).over.rate, 0);
	assert_int_not_equal(policy_limits(&policy, LEG_HOST, false).over.rate,
			     0);
}

/* It is judged by its own rate, whatever those of its members and of its parent are. */
TH_TEST(a_group_has_a_limit_of_its_own)
{
	const struct natra_group_given given = {
		.name = "g",
		.rate_bits_per_sec = {0, RATE},
	};
	const struct natra_group_limits l = group_limits(&given, NULL, true);

	assert_int_equal(l.over.rate, limits.over.rate);
	assert_int_equal(l.over.debt, RATE / 8 + RATE / 16);
	assert_int_equal(group_limits(&given, NULL, false).over.rate, 0);
}

TH_MAIN_EACH(begin, NULL)
