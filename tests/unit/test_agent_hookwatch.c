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

struct rig {
	struct log log;
	struct jobs jobs;
	struct health health;
	struct loop loop;
	struct workers workers;
	struct hookwatch h;
};

static void open_rig(struct rig *rig)
{
	*rig = (struct rig){.log = LOG_INIT, .loop = LOOP_INIT};
	rig->log.fn = log_nothing;
	rig->jobs.log = rig->health.log = &rig->log;
	rig->workers.loop = &rig->loop;
	rig->h.jobs = &rig->jobs;
	rig->h.health = &rig->health;
	assert_int_equal(loop_open(&rig->loop), 0);
	assert_int_equal(hookwatch_open(&rig->h, &rig->workers), 0);
	rig->h.list = memory_new(2 * sizeof(*rig->h.list));
	rig->h.list[0] = (struct hook_entry){
		.ifindex = CHANGED,
		.is_asked = true,
		.may_restore = true,
	};
	rig->h.list[1] = (struct hook_entry){.ifindex = QUIET};
	rig->h.len = 2;
	rig->h.looks_at_all = false;
	rig->h.looked_ms = clock_ms();
}

static void close_rig(struct rig *rig)
{
	hookwatch_close(&rig->h);
	loop_close(&rig->loop);
}

/* What a job was to look at is not forgotten if it fails, and is not tried all the time. */
TH_TEST(test_failed_job)
{
	struct rig rig;
	struct hookwatch *h = &rig.h;

	open_rig(&rig);
	h->work.done(h, WORK_FAILED);
	assert_true(h->list[0].is_dirty);
	assert_false(h->list[1].is_dirty);
	assert_false(h->looks_at_all);
	assert_in_range(ms_to_next(h), 1000, 5000);
	h->task = HOOKS_LOOK_AT_ALL;
	h->work.done(h, WORK_LATE);
	assert_true(h->looks_at_all);
	close_rig(&rig);
}

static void run_nothing(void *arg)
{
}

static void done_nothing(void *arg, enum work_end end)
{
}

/* Edits do not wait for a look, which may take minutes; what it has found to be missing is given
 * back while no edit attaches anything again. */
TH_TEST(test_order)
{
	struct rig rig;
	struct hookwatch *h = &rig.h;
	struct hooks_report *report;
	struct work edit = {
		.run = run_nothing,
		.done = done_nothing,
		.report_size = 1,
		.time_max_ms = 10000,
		.sets_limits = true,
	};

	open_rig(&rig);
	h->work.run = run_nothing;
	assert_int_equal(work_open(&edit, &rig.workers), 0);
	work_start(&edit);
	h->next.expired(h);
	assert_true(h->work.pid);
	while (h->work.pid)
		workers_reap(&rig.workers);
	/* The job of nothing has reported nothing. */
	work_start(&edit);
	report = h->work.report;
	report->len = 2;
	report->list[0].ifindex = CHANGED;
	report->list[0].state = HOOK_MISSING;
	report->list[1].ifindex = QUIET;
	h->list = memory_grow(h->list, 2 * sizeof(*h->list));
	h->list[0] =
		(struct hook_entry){.ifindex = CHANGED, .may_restore = true};
	h->len = 1;
	h->work.done(h, WORK_DONE);
	assert_true(h->work.is_waiting);
	assert_int_equal(h->task, HOOKS_RESTORE);
	assert_true(h->list[0].is_missing);
	assert_false(h->list[1].is_missing);
	work_close(&edit);
	close_rig(&rig);
}

/* The kernel's locks are left to others for as long as a look took. */
TH_TEST(test_slow_look)
{
	struct rig rig;
	struct hookwatch *h = &rig.h;

	open_rig(&rig);
	h->looked_ms = clock_ms() - 30000;
	h->work.done(h, WORK_DONE);
	assert_in_range(ms_to_next(h), 25000, 30001);
	close_rig(&rig);
}

TH_MAIN(NULL, NULL)
