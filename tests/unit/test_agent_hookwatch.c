/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <stdbool.h>
#include <sys/timerfd.h>

#include "../../tools/common/memory.h"
#include "hookwatch.h"

#define CHANGED 7
#define QUIET   8

static void log_nothing(void *arg, enum natra_log_level level, const char *msg)
{
}

static int64_t ms_to_next(const struct hookwatch *h)
{
	struct itimerspec left;

	assert_int_equal(timerfd_gettime(h->next.source.fd, &left), 0);
	return (int64_t)left.it_value.tv_sec * 1000 +
	       left.it_value.tv_nsec / 1000000;
}

/* What a job was to look at is not forgotten if it fails, and is not tried all the time. */
TH_TEST(test_failed_job)
{
	struct log log = LOG_INIT;
	const struct jobs jobs = {.log = &log};
	struct health health = {.log = &log};
	struct loop loop = LOOP_INIT;
	struct workers workers = {.loop = &loop};
	struct hookwatch h = {.jobs = &jobs, .health = &health};

	log.fn = log_nothing;
	assert_int_equal(loop_open(&loop), 0);
	assert_int_equal(hookwatch_open(&h, &workers), 0);
	h.list = memory_new(2 * sizeof(*h.list));
	h.list[0] = (struct hook_entry){.ifindex = CHANGED, .is_asked = true};
	h.list[1] = (struct hook_entry){.ifindex = QUIET};
	h.len = 2;
	h.looks_at_all = false;
	h.looked_ms = clock_ms();
	h.work.done(&h, WORK_FAILED);
	assert_true(h.list[0].is_dirty);
	assert_false(h.list[1].is_dirty);
	assert_false(h.looks_at_all);
	assert_in_range(ms_to_next(&h), 1000, 5000);
	h.asks_for_all = true;
	h.work.done(&h, WORK_LATE);
	assert_true(h.looks_at_all);
	hookwatch_close(&h);
	loop_close(&loop);
}

TH_MAIN(NULL, NULL)
