/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <string.h>
#include <unistd.h>

#include "work.h"

#define KINDS 4

static char order[KINDS + 1];
static struct work works[KINDS];

static void run(void *arg)
{
	(void)arg;
}

/* Notes which job has ended. */
static void done(void *arg, enum work_end end)
{
	const struct work *work = arg;

	assert_int_equal(end, WORK_DONE);
	order[strlen(order)] = (char)('a' + (work - works));
}

/* What sets limits runs one after another, and nobody is overtaken. */
static void test_order(void **state)
{
	struct loop loop = LOOP_INIT;
	struct workers workers = {.loop = &loop};

	(void)state;
	assert_int_equal(loop_open(&loop), 0);
	for (size_t i = 0; i < KINDS; i++) {
		works[i] = (struct work){
			.run = run,
			.done = done,
			.arg = &works[i],
			.report_size = 1,
			.time_max_ms = 10000,
			.sets_limits = true,
		};
		assert_int_equal(work_open(&works[i], &workers), 0);
	}
	for (size_t i = 0; i < KINDS; i++)
		work_start(&works[i]);
	for (int i = 0; i < 10000 && strlen(order) < KINDS; i++) {
		workers_reap(&workers);
		(void)usleep(1000);
	}
	assert_string_equal(order, "abcd");
	for (size_t i = 0; i < KINDS; i++)
		work_close(&works[i]);
	loop_close(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
