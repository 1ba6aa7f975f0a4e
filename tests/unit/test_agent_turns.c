/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common/text.h"
#include "turns.h"

#define TIME_MS 200

/* Is shared with the processes of the walks. */
struct walk {
	struct turns turns;
	int begun;
	bool is_slow;
	volatile pid_t pid;
};

static struct walk *new_walk(uint64_t time_max_ms)
{
	struct walk *walk = mmap(NULL, sizeof(*walk), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(walk != MAP_FAILED);
	assert_int_equal(turns_open(&walk->turns, time_max_ms), 0);
	return walk;
}

static void free_walk(struct walk *walk)
{
	turns_close(&walk->turns);
	(void)munmap(walk, sizeof(*walk));
}

static int look(void *arg)
{
	static const char *const names[] = {"a", "b", "c"};
	struct walk *walk = arg;

	for (int i = 0; i < 3; i++) {
		if (!turn_begin(&walk->turns, names[i]))
			continue;
		walk->begun++;
		if (walk->is_slow)
			(void)usleep(2 * TIME_MS * 1000);
		turn_end();
	}
	return 7;
}

/* The job's time is for all its walks together; what is left of them is late, and the job ends. */
TH_TEST(test_time_is_over)
{
	struct walk *walk = new_walk(60000);
	size_t late = 0;

	assert_int_equal(turns_run(&walk->turns, look, walk, &late), 7);
	assert_int_equal(walk->begun, 3);
	assert_int_equal(late, 0);
	assert_true(walk->turns.last == 0);
	free_walk(walk);
	walk = new_walk(TIME_MS);
	walk->is_slow = true;
	assert_int_equal(turns_run(&walk->turns, look, walk, &late), 7);
	/* A machine that is busy may not begin the first one in time either. */
	assert_true(walk->begun <= 1);
	assert_int_equal(late, 3 - walk->begun);
	assert_true(walk->turns.last == (walk->begun ? text_hash("a") : 0));
	assert_int_equal(turns_run(&walk->turns, look, walk, &late), 7);
	assert_true(walk->begun <= 1);
	free_walk(walk);
}

/* Nothing but SIGKILL ends it. */
static int hang(void *arg)
{
	struct walk *walk = arg;
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	walk->pid = getpid();
	(void)pause();
	return 0;
}

/* A walk that outlives its job would set limits beside the next one. */
TH_TEST(test_job_is_killed)
{
	struct walk *walk = new_walk(60000);
	struct pollfd end = {.events = POLLIN};
	size_t late = 0;
	int ends[2], r;
	pid_t job;

	/* The other end is open as long as one of the two processes lives. */
	assert_int_equal(pipe(ends), 0);
	job = fork();
	if (job == 0)
		_exit(turns_run(&walk->turns, hang, walk, &late));
	(void)close(ends[1]);
	end.fd = ends[0];
	for (int i = 0; i < 10000 && !walk->pid; i++)
		(void)usleep(1000);
	assert_true(walk->pid > 0);
	assert_int_equal(poll(&end, 1, 0), 0);
	assert_int_equal(kill(job, SIGKILL), 0);
	assert_int_equal(waitpid(job, NULL, 0), job);
	r = poll(&end, 1, 10000);
	if (r != 1)
		(void)kill(walk->pid, SIGKILL);
	assert_int_equal(r, 1);
	assert_true(end.revents & POLLHUP);
	(void)close(ends[0]);
	free_walk(walk);
}

TH_MAIN(NULL, NULL)
