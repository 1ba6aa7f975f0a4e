/* SPDX-License-Identifier: BSD-2-Clause */
#include "work.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A job that was killed ends within this time, also on a busy machine, unless it hangs. */
#define KILL_MAX_MS  5000
/* The agent itself ends within the time that its pod has. */
#define CLOSE_MAX_MS 1000

static void start_waiting(struct workers *workers);

static void tell(const struct work *work)
{
	if (work->workers->stuck)
		work->workers->stuck(work->workers->arg, work);
}

static void too_late(void *arg)
{
	struct work *work = arg;

	if (work->is_late) {
		work->is_stuck = true;
		tell(work);
		start_waiting(work->workers);
		return;
	}
	work->is_late = true;
	/* The job may have started programs of its own. */
	(void)kill(-work->pid, SIGKILL);
	timer_set(&work->limit, KILL_MAX_MS);
}

int work_open(struct work *work, struct workers *workers)
{
	work->workers = workers;
	work->pid = 0;
	/* What a job has started is waited for when the job itself has ended. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	work->limit.source.fd = -1;
	work->report = mmap(NULL, work->report_size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (work->report == MAP_FAILED) {
		work->report = NULL;
		return -errno;
	}
	return timer_open(&work->limit, workers->loop, too_late, work);
}

static _Noreturn void run_child(const struct work *work, pid_t parent)
{
	sigset_t none;

	(void)setpgid(0, 0);
	/* The agent may have died before this call took effect. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_DFL);
	/* A terminal may stop processes that write to it in the background. */
	(void)signal(SIGTTOU, SIG_IGN);
	work->run(work->arg);
	_exit(EXIT_SUCCESS);
}

static bool must_wait(const struct work *work)
{
	const struct work *other = work->workers->first;

	while (other && (!other->sets_limits || other->is_stuck))
		other = other->next;
	return work->sets_limits && other;
}

static void put(struct work **list, struct work *work)
{
	work->next = *list;
	*list = work;
}

static void put_last(struct work **list, struct work *work)
{
	while (*list)
		list = &(*list)->next;
	put(list, work);
}

static void take(struct work **list, const struct work *work)
{
	while (*list != work)
		list = &(*list)->next;
	*list = work->next;
}

void work_start(struct work *work)
{
	pid_t pid, parent = getpid();

	if (work->pid || work->is_waiting)
		return;
	if (must_wait(work)) {
		work->is_waiting = true;
		/* Two kinds that always have something to do must not starve a third. */
		put_last(&work->workers->waiting, work);
		return;
	}
	memset(work->report, 0, work->report_size);
	work->is_late = work->is_reaped = false;
	pid = fork();
	if (pid == 0)
		run_child(work, parent);
	if (pid < 0) {
		work->done(work->arg, WORK_FAILED);
		return;
	}
	/* Both processes set the group, so that it is set whichever of them runs
	 * first. */
	(void)setpgid(pid, pid);
	work->pid = pid;
	put(&work->workers->first, work);
	timer_set(&work->limit, work->time_max_ms);
}

static void unlink_work(struct work *work)
{
	take(&work->workers->first, work);
	work->pid = 0;
	timer_stop(&work->limit);
}

static void start_waiting(struct workers *workers)
{
	struct work *work = workers->waiting;

	if (!work || must_wait(work))
		return;
	workers->waiting = work->next;
	work->is_waiting = false;
	work_start(work);
}

static void end_with(struct work *work, enum work_end end)
{
	struct workers *workers = work->workers;

	unlink_work(work);
	if (work->is_stuck) {
		work->is_stuck = false;
		tell(work);
	}
	work->done(work->arg, end);
	start_waiting(workers);
}

static void ended(struct work *work, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
		end_with(work, WORK_DONE);
	else if (work->is_late)
		work->is_reaped = true;
	else
		end_with(work, WORK_FAILED);
}

/* Finds a job that was killed and of which no process is left, also none that it has started. */
static struct work *find_gone(const struct workers *workers)
{
	struct work *work = workers->first;

	while (work && !(work->is_reaped && kill(-work->pid, 0) < 0))
		work = work->next;
	return work;
}

void workers_reap(struct workers *workers)
{
	struct work *gone;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		struct work *work = workers->first;

		while (work && work->pid != pid)
			work = work->next;
		/* A job that somebody has stopped may hold locks for which pods wait. */
		if (work && WIFSTOPPED(status))
			(void)kill(-pid, SIGCONT);
		else if (work)
			ended(work, status);
	}
	while ((gone = find_gone(workers)))
		end_with(gone, WORK_LATE);
}

static void kill_and_wait(pid_t pid)
{
	const uint64_t end_ms = clock_ms() + CLOSE_MAX_MS;

	(void)kill(-pid, SIGKILL);
	while (waitpid(pid, NULL, WNOHANG) == 0 && clock_ms() < end_ms)
		(void)usleep(1000);
}

void work_close(struct work *work)
{
	if (work->pid) {
		kill_and_wait(work->pid);
		unlink_work(work);
	}
	if (work->is_waiting)
		take(&work->workers->waiting, work);
	work->is_waiting = false;
	if (work->workers)
		timer_close(&work->limit, work->workers->loop);
	if (work->report)
		(void)munmap(work->report, work->report_size);
	work->report = NULL;
}
