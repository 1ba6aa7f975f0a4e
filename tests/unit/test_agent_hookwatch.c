/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <stdbool.h>
#include <sys/timerfd.h>

#include "../../tools/common/memory.h"
#include "hookwatch.h"

#define CHANGED 7
#define QUIET   8
#define NEW     9

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

/* A job begins when the timer has expired. */
static void end_job(struct hookwatch *h, enum work_end end)
{
	timer_stop(&h->next);
	h->work.done(h, end);
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
	end_job(h, WORK_FAILED);
	assert_true(h->list[0].is_dirty);
	assert_false(h->list[1].is_dirty);
	assert_false(h->looks_at_all);
	assert_in_range(ms_to_next(h), 1000, 5000);
	h->task = HOOKS_LOOK_AT_ALL;
	end_job(h, WORK_LATE);
	assert_true(h->looks_at_all);
	close_rig(&rig);
}

/* Makes the report of a job that has found one interface. */
static struct hook_report *report_one(const struct hookwatch *h,
				      uint32_t ifindex, uint32_t state)
{
	struct hooks_report *report = h->work.report;

	*report = (struct hooks_report){.len = 1};
	report->list[0] = (struct hook_report){ifindex, state, false};
	return &report->list[0];
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
	report_one(h, CHANGED, HOOK_MISSING);
	end_job(h, WORK_DONE);
	assert_true(h->work.is_waiting);
	assert_int_equal(h->task, HOOKS_RESTORE);
	assert_true(h->list[0].is_missing);
	work_close(&edit);
	close_rig(&rig);
}

/* Ends as many jobs that give a place back as natra gives it back, and one that may not. */
static void fight(struct hookwatch *h)
{
	h->task = HOOKS_RESTORE;
	for (int round = 0; round < 5; round++) {
		assert_false(h->list[0].is_given_up);
		report_one(h, CHANGED, HOOK_RESTORED)->has_begun = true;
		end_job(h, WORK_DONE);
	}
	report_one(h, CHANGED, HOOK_LOST)->has_begun = true;
	end_job(h, WORK_DONE);
	assert_true(h->list[0].is_given_up);
}

/* A place that others take each time is left to them until it was quiet for ten minutes. */
TH_TEST(test_gives_up)
{
	static const struct {
		uint64_t quiet_ms;
		bool is_given_up;
	} cases[] = {{599000, true}, {601000, false}};
	struct rig rig;
	struct hookwatch *h = &rig.h;

	for (size_t i = 0; i < TH_LEN(cases); i++) {
		open_rig(&rig);
		h->work.run = run_nothing;
		fight(h);
		assert_int_equal(rig.health.hook_repairs, 5);
		h->list[0].last_ms = clock_ms() - cases[i].quiet_ms;
		h->next.expired(h);
		assert_int_equal(h->list[0].is_given_up, cases[i].is_given_up);
		while (h->work.pid)
			workers_reap(&rig.workers);
		close_rig(&rig);
	}
}

/* RTNL is left to others for as long as a look took, but for what the kernel tells of. */
TH_TEST(test_slow_look)
{
	struct rig rig;
	struct hookwatch *h = &rig.h;

	open_rig(&rig);
	h->task = HOOKS_LOOK_AT_ALL;
	h->all_looked_ms = clock_ms() - 30000;
	end_job(h, WORK_DONE);
	assert_in_range(ms_to_next(h), 25000, 30001);
	report_one(h, CHANGED, HOOK_WELL)->has_begun = true;
	h->task = HOOKS_LOOK;
	h->looked_ms = clock_ms();
	end_job(h, WORK_DONE);
	h->list[0].is_dirty = true;
	end_job(h, WORK_DONE);
	assert_in_range(ms_to_next(h), 0, 1000);
	close_rig(&rig);
}

/* Looks for changes do not put off the look at all, which links of TCX need. */
TH_TEST(test_changes_all_the_time)
{
	struct rig rig;
	struct hookwatch *h = &rig.h;

	open_rig(&rig);
	h->work.run = run_nothing;
	h->all_looked_ms = clock_ms() - 9000;
	h->is_strange = true;
	end_job(h, WORK_DONE);
	assert_in_range(ms_to_next(h), 0, 1001);
	h->looked_ms = clock_ms() - 5000;
	h->all_looked_ms = clock_ms() - 10000;
	h->next.expired(h);
	assert_int_equal(h->task, HOOKS_LOOK_AT_ALL);
	close_rig(&rig);
}

/* An interface at which a job has not looked is looked at soon. */
TH_TEST(test_not_seen)
{
	struct rig rig;
	struct hookwatch *h = &rig.h;

	open_rig(&rig);
	h->task = HOOKS_RESTORE;
	report_one(h, NEW, HOOK_UNKNOWN);
	end_job(h, WORK_DONE);
	assert_true(h->list[0].is_dirty);
	h->list[0] = (struct hook_entry){.ifindex = NEW, .is_asked = true};
	h->task = HOOKS_LOOK_AT_ALL;
	report_one(h, NEW, HOOK_UNKNOWN);
	((struct hooks_report *)h->work.report)->next_ifindex = NEW;
	end_job(h, WORK_DONE);
	assert_true(h->list[0].is_dirty);
	assert_int_equal(h->from_ifindex, NEW);
	h->list[0].is_dirty = false;
	report_one(h, NEW, HOOK_WELL)->has_begun = true;
	end_job(h, WORK_DONE);
	assert_false(h->list[0].is_dirty);
	assert_int_equal(h->from_ifindex, 0);
	close_rig(&rig);
}

TH_MAIN(NULL, NULL)
