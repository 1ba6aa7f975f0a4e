/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include "budget.h"

TH_TEST(test_parse)
{
	struct budget budget;

	assert_true(budget_parse(&budget, "5/600"));
	assert_int_equal(budget.times, 5);
	assert_int_equal(budget.period_ms, 600000);
	assert_true(budget_parse(&budget, "64/86400"));
}

TH_TEST(test_bad_text)
{
	static const char *const bad[] = {
		"",       "5",       "5/",
		"/600",   "0/600",   "5/0",
		"65/600", "5/86401", "-5/600",
		" 5/600", "5/ 600",  "5/600 ",
		"5/600s", "5.0/600", "99999999999999999999/600",
	};
	struct budget budget;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (budget_parse(&budget, bad[i]))
			fail_msg("'%s' is taken", bad[i]);
	}
}

/* In any stretch of 10 s it is done at most three times. */
TH_TEST(test_bound)
{
	struct budget budget;
	uint64_t done[1000];
	size_t count = 0;

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

TH_TEST(test_wait)
{
	struct budget budget;

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

TH_MAIN(NULL, NULL)
