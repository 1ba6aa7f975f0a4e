/* SPDX-License-Identifier: BSD-2-Clause */
/* Many threads call the library at once, each with a handle of its own. */
#include "rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PODS   16
#define ROUNDS 3
#define RIVALS 4

static struct pod pods[PODS];

/* The task and the results of one thread; cmocka's asserts work only in the
 * main thread. */
struct job {
	pthread_t thread;
	const struct pod *pod;
	char id[32];
	pthread_barrier_t *start;
	int results[4];
	char error[256];
	bool moved; /* the call has changed the thread's namespace */
};

static ino_t netns_of_thread(void)
{
	struct stat st;

	return stat("/proc/thread-self/ns/net", &st) == 0 ? st.st_ino : 0;
}

static void note_error(struct job *job, const struct natra *n, int r)
{
	if (r < 0 && !job->error[0])
		(void)snprintf(job->error, sizeof(job->error), "%s",
			       natra_error(n));
}

/* Returns 0 whether or not another thread was faster. */
static int detach(struct natra *n, const struct natra_target *target)
{
	int r = natra_detach(n, target);

	return r < 0 ? r : 0;
}

/* Calls attach, check, query and detach. */
static void *whole_life(void *arg)
{
	struct job *job = arg;
	struct natra_target target = pod_target(job->pod, job->id);
	struct natra_policy policy = policy_of(10, 20);
	struct natra_info info = NATRA_INIT(info);
	struct natra *n = rig_open();
	ino_t netns = netns_of_thread();

	(void)pthread_barrier_wait(job->start);
	job->results[0] = natra_attach(n, &target, &policy, NULL);
	note_error(job, n, job->results[0]);
	job->results[1] = natra_check(n, job->id, &policy);
	note_error(job, n, job->results[1]);
	job->results[2] = natra_query(n, job->id, &info);
	note_error(job, n, job->results[2]);
	if (job->results[2] == 0 && strcmp(info.id, job->id) != 0)
		job->results[2] = -EBADMSG;
	job->results[3] = detach(n, &target);
	note_error(job, n, job->results[3]);
	job->moved = netns_of_thread() != netns;
	natra_close(n);
	return NULL;
}

static void *attach_only(void *arg)
{
	struct job *job = arg;
	struct natra_target target = pod_target(job->pod, job->id);
	struct natra_policy policy = policy_of(10, 20);
	struct natra *n = rig_open();

	(void)pthread_barrier_wait(job->start);
	job->results[0] = natra_attach(n, &target, &policy, NULL);
	note_error(job, n, job->results[0]);
	natra_close(n);
	return NULL;
}

static void *detach_only(void *arg)
{
	struct job *job = arg;
	struct natra_target target = pod_target(job->pod, job->id);
	struct natra *n = rig_open();

	(void)pthread_barrier_wait(job->start);
	job->results[0] = detach(n, &target);
	note_error(job, n, job->results[0]);
	natra_close(n);
	return NULL;
}

static void run(struct job *jobs, unsigned int len, void *(*fn)(void *arg))
{
	pthread_barrier_t start;

	assert_int_equal(pthread_barrier_init(&start, NULL, len), 0);
	for (unsigned int i = 0; i < len; i++) {
		jobs[i].start = &start;
		assert_int_equal(
			pthread_create(&jobs[i].thread, NULL, fn, &jobs[i]), 0);
	}
	for (unsigned int i = 0; i < len; i++)
		assert_int_equal(pthread_join(jobs[i].thread, NULL), 0);
	assert_int_equal(pthread_barrier_destroy(&start), 0);
}

static void all_well(const struct job *jobs, unsigned int len)
{
	for (unsigned int i = 0; i < len; i++) {
		for (int j = 0; j < 4; j++) {
			if (jobs[i].results[j] != 0)
				fail_msg("%s, step %d: %d, %s", jobs[i].id, j,
					 jobs[i].results[j], jobs[i].error);
		}
		assert_false(jobs[i].moved);
	}
}

static struct job job_of(unsigned int pod, const char *id)
{
	struct job job = {.pod = &pods[pod]};

	(void)snprintf(job.id, sizeof(job.id), "%s", id);
	return job;
}

TH_TEST(many_pods)
{
	struct job jobs[PODS];
	char *before = rig_state();
	char id[32];

	for (unsigned int i = 0; i < PODS; i++) {
		(void)snprintf(id, sizeof(id), "many-%u", i);
		jobs[i] = job_of(i, id);
	}
	run(jobs, PODS, whole_life);
	all_well(jobs, PODS);
	assert_int_equal(rig_pins(), 0);
	rig_same_state(before);
	free(before);
}

/* Another process mounts bpffs meanwhile: a second mount would hide its
 * pins. */
TH_TEST(one_bpffs)
{
	struct job job = job_of(0, "mount");
	pthread_barrier_t start;
	int fd;

	rig_sh("umount " BPFFS);
	fd = open(BPFFS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(pthread_barrier_init(&start, NULL, 1), 0);
	job.start = &start;
	assert_int_equal(pthread_create(&job.thread, NULL, whole_life, &job),
			 0);
	/* By then the thread waits for the lock, or has not begun: both are
	 * right. */
	(void)usleep(100000);
	rig_sh("mount -t bpf bpf " BPFFS);
	(void)close(fd);
	assert_int_equal(pthread_join(job.thread, NULL), 0);
	assert_int_equal(pthread_barrier_destroy(&start), 0);
	all_well(&job, 1);
	rig_sh("[ $(grep -c ' " BPFFS " ' /proc/self/mountinfo) -eq 1 ]");
}

/* Before bpffs is mounted its directory is one that a process without privileges can lock. */
TH_TEST(a_lock_of_anybody_keeps_bpffs_from_nobody)
{
	struct job job = job_of(0, "mount");
	int fd;

	rig_sh("umount " BPFFS);
	fd = open(BPFFS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	run(&job, 1, whole_life);
	(void)close(fd);
	all_well(&job, 1);
	rig_sh("[ $(grep -c ' " BPFFS " ' /proc/self/mountinfo) -eq 1 ]");
}

/* All threads succeed at the same time, and there is one attachment. */
TH_TEST(same_id)
{
	struct natra_policy policy = policy_of(10, 20);
	struct natra *n = rig_open();
	struct job jobs[RIVALS];
	char *before = rig_state();
	unsigned int pins;

	jobs[0] = job_of(0, "same");
	run(jobs, 1, attach_only);
	all_well(jobs, 1);
	pins = rig_pins();
	run(jobs, 1, detach_only);
	all_well(jobs, 1);

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < RIVALS; i++)
			jobs[i] = job_of(0, "same");
		run(jobs, RIVALS, attach_only);
		all_well(jobs, RIVALS);
		assert_int_equal(natra_check(n, "same", &policy), 0);
		assert_int_equal(rig_pins(), pins);
		run(jobs, RIVALS, detach_only);
		all_well(jobs, RIVALS);
		assert_int_equal(rig_pins(), 0);
	}
	rig_same_state(before);
	free(before);
	natra_close(n);
}

/* Threads attach and detach one id at once: any may win, none may fail. */
TH_TEST(attach_against_detach)
{
	struct job jobs[RIVALS];
	char *before = rig_state();

	for (int i = 0; i < RIVALS; i++)
		jobs[i] = job_of(0, "same");
	run(jobs, RIVALS, whole_life);
	for (int i = 0; i < RIVALS; i++) {
		/* check and query may find that another thread has detached
		 * it. */
		assert_int_equal(jobs[i].results[0], 0);
		assert_int_equal(jobs[i].results[3], 0);
	}
	assert_int_equal(rig_pins(), 0);
	rig_same_state(before);
	free(before);
}

/* Only one thread gets the interface, and the others' error names the owner. */
TH_TEST(different_ids)
{
	struct job jobs[RIVALS];
	char *before = rig_state();
	int won = 0;
	char id[32];

	for (int i = 0; i < RIVALS; i++) {
		(void)snprintf(id, sizeof(id), "rival-%d", i);
		jobs[i] = job_of(0, id);
	}
	run(jobs, RIVALS, attach_only);
	for (int i = 0; i < RIVALS; i++) {
		int r = jobs[i].results[0];

		won += r == 0;
		if (r != 0 && r != -EBUSY)
			fail_msg("%s: %d, %s", jobs[i].id, r, jobs[i].error);
		jobs[i].error[0] = '\0';
	}
	run(jobs, RIVALS, detach_only);
	rig_same_state(before);
	free(before);
	assert_int_equal(won, 1);
}

static void setup(void)
{
	char name[16];

	for (int i = 0; i < PODS; i++) {
		(void)snprintf(name, sizeof(name), "p%d", i);
		pods[i] = pod_make(name);
	}
}

static void teardown(void)
{
	for (int i = 0; i < PODS; i++)
		pod_remove(&pods[i]);
}

static void note_signal(int signal)
{
	(void)signal;
}

/* A call returns what it does without signals, and a child may use its parent's handle. */
TH_TEST(signals_and_fork_end_no_call)
{
	const struct sigaction action = {.sa_handler = note_signal};
	struct itimerval often = {{0, 700}, {0, 700}}, never = {0};
	struct natra_features features = NATRA_INIT(features);
	struct natra_stats stats = NATRA_INIT(stats);
	struct natra_policy policy = policy_of(10, 20);
	struct pod signalled = pod_make("signalled");
	struct natra_target target = pod_target(&signalled, "signalled");
	struct natra *n = rig_open();
	int status = -1;
	pid_t pid;

	assert_int_equal(sigaction(SIGALRM, &action, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
		assert_int_equal(natra_configure(n, "signalled", &policy), 0);
		assert_int_equal(natra_check(n, "signalled", NULL), 0);
		assert_int_equal(natra_probe(n, &features), 0);
		assert_int_equal(natra_detach(n, &target), 1);
	}
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(natra_stats(n, "signalled", &stats) != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(natra_detach(n, &target), 1);
	natra_close(n);
	pod_remove(&signalled);
}

int main(void)
{
	int failed;

	rig_enter();
	setup();
	failed = th_run_each(NULL, NULL);
	teardown();
	return failed;
}
