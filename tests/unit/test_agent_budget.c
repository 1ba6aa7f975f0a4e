/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include "budget.h"

static void test_parse(void **state)
{
	struct budget budget;

	(void)state;
	assert_true(budget_parse(&budget, "5/600"));
	assert_int_equal(budget.times, 5);
	assert_int_equal(budget.period_ms, 600000);
	assert_true(budget_parse(&budget, "64/86400"));
}

static void test_bad_text(void **state)
{
	static const char *const bad[] = {
		"",       "5",       "5/",
		"/600",   "0/600",   "5/0",
		"65/600", "5/86401", "-5/600",
		" 5/600", "5/ 600",  "5/600 ",
		"5/600s", "5.0/600", "99999999999999999999/600",
	};
	struct budget budget;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (budget_parse(&budget, bad[i]))
			fail_msg("'%s' is taken", bad[i]);
	}
}

/* In any stretch of 10 s it is done at most three times. */
static void test_bound(void **state)
{
	struct budget budget;
	uint64_t done[1000];
	size_t count = 0;

	(void)state;
	assert_true(budget_parse(&budget, "3/10"));
	for (uint64_t now = 5; now < 200000; now += 37) {
		if (budget_wait_ms(&budget, now))
			continue;
		budget_take(&budget, now);
		done[count++] = now;
		if (count > 3)
			assert_true(done[count - 1] - done[count - 4] >= 10000);
	}
	assert_in_range(count, 57, 60);
}

static void test_wait(void **state)
{
	struct budget budget;

	(void)state;
	assert_true(budget_parse(&budget, "2/10"));
	assert_int_equal(budget_wait_ms(&budget, 0), 0);
	budget_take(&budget, 1000);
	assert_int_equal(budget_wait_ms(&budget, 1000), 0);
	budget_take(&budget, 4000);
	assert_int_equal(budget_wait_ms(&budget, 4000), 7000);
	assert_int_equal(budget_wait_ms(&budget, 10999), 1);
	assert_int_equal(budget_wait_ms(&budget, 11000), 0);
	budget_take(&budget, 11000);
	assert_int_equal(budget_wait_ms(&budget, 11000), 3000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_bad_text),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
