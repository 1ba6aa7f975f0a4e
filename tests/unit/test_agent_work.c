/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define KINDS 4

static char order[16];
static struct work works[KINDS];

static void run(void *arg)
{
}

static void note(char what)
{
	order[strlen(order)] = what;
}

/* Notes which job has ended. */
static void done(void *arg, enum work_end end)
{
	const struct work *work = arg;

	assert_int_equal(end, WORK_DONE);
	note((char)('a' + (work - works)));
}

/* What sets limits runs one after another, and nobody is overtaken. */
TH_TEST(test_order)
{
	struct loop loop = LOOP_INIT;
	struct workers workers = {.loop = &loop};

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

/* A process that hangs in the kernel, as on a disk that is gone, takes no signal. */
static bool takes_signals, child_hangs;
int __real_kill(pid_t pid, int number);

int __wrap_kill(pid_t pid, int number)
{
	if (child_hangs && number == SIGKILL && pid < 0)
		pid = -pid;
	return takes_signals ? __real_kill(pid, number) : 0;
}

static void hang(void *arg)
{
	(void)pause();
}

/* A job may have a child that hangs, and end by itself. */
static void hang_in_child(void *arg)
{
	pid_t *child = arg, pid = fork();

	if (pid > 0)
		*child = pid;
	(void)pause();
}

static void done_late(void *arg, enum work_end end)
{
	assert_int_equal(end, WORK_LATE);
	note('L');
}

static void note_stuck(void *arg, const struct work *work)
{
	note(work->is_stuck ? 'S' : 's');
}

static void until(struct workers *workers, const char *wanted)
{
	for (int i = 0; i < 10000 && strcmp(order, wanted) != 0; i++) {
		workers_reap(workers);
		(void)usleep(1000);
	}
	assert_string_equal(order, wanted);
}

/* Nobody waits for one that does not end when it is killed, and it is told, also when it has. */
TH_TEST(test_stuck)
{
	struct loop loop = LOOP_INIT;
	struct workers workers = {.loop = &loop, .stuck = note_stuck};
	struct work base = {
		.report_size = 1, .time_max_ms = 100000, .sets_limits = true};
	struct work *first = &works[0], *second = &works[1];

	memset(order, 0, sizeof(order));
	assert_int_equal(loop_open(&loop), 0);
	*first = *second = base;
	first->run = hang;
	first->done = done_late;
	second->run = run;
	second->done = done;
	second->arg = second;
	assert_int_equal(work_open(first, &workers), 0);
	assert_int_equal(work_open(second, &workers), 0);
	work_start(first);
	work_start(second);
	assert_true(second->is_waiting);
	first->limit.expired(first->limit.arg);
	assert_true(second->is_waiting);
	first->limit.expired(first->limit.arg);
	until(&workers, "Sb");
	/* A second one of its kind would hang as well. */
	work_start(first);
	assert_false(first->is_waiting);
	takes_signals = true;
	(void)kill(-first->pid, SIGKILL);
	until(&workers, "SbsL");
	/* The agent ends although a job hangs. */
	work_start(first);
	takes_signals = false;
	{
		const pid_t pid = first->pid;

		work_close(first);
		assert_int_equal(first->pid, 0);
		takes_signals = true;
		(void)kill(-pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	work_close(second);
	loop_close(&loop);
}

/* A job hangs as long as something that it has started does. */
TH_TEST(test_child_is_stuck)
{
	struct loop loop = LOOP_INIT;
	struct workers workers = {.loop = &loop, .stuck = note_stuck};
	struct work *work = &works[0];
	volatile pid_t *child;

	memset(order, 0, sizeof(order));
	assert_int_equal(loop_open(&loop), 0);
	*work = (struct work){
		.run = hang_in_child,
		.done = done_late,
		.report_size = sizeof(*child),
		.time_max_ms = 100000,
	};
	assert_int_equal(work_open(work, &workers), 0);
	work->arg = work->report;
	child = work->report;
	takes_signals = child_hangs = true;
	work_start(work);
	for (int i = 0; i < 10000 && !*child; i++)
		(void)usleep(1000);
	assert_true(*child > 0);
	work->limit.expired(work->limit.arg);
	for (int i = 0; i < 10000 && !work->is_reaped; i++) {
		workers_reap(&workers);
		(void)usleep(1000);
	}
	assert_string_equal(order, "");
	work->limit.expired(work->limit.arg);
	assert_string_equal(order, "S");
	child_hangs = false;
	(void)kill(*child, SIGKILL);
	until(&workers, "SsL");
	work_close(work);
	loop_close(&loop);
}

TH_MAIN(NULL, NULL)
