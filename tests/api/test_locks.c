/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check the lock that keeps two attachers out of one namespace: no
 * process in the pod can hold it, and no other process can make an attacher
 * wait for ever. */
#include "rig.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534

static struct pod pod;

static int begin(void **state)
{
	(void)state;
	rig_reset();
	pod = pod_make("locks");
	return 0;
}

static int end(void **state)
{
	(void)state;
	pod_remove(&pod);
	return 0;
}

/* Becomes a process in the pod, without privileges, and opens its own namespace. */
static int open_as_nobody(const char *path)
{
	if (setns(pod.fd, CLONE_NEWNET) < 0 || setgid(NOBODY) < 0 ||
	    setuid(NOBODY) < 0)
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Starts a process that locks a path for some seconds, and does not react. */
static pid_t hold(int (*open_it)(const char *path), const char *path,
		  unsigned int seconds)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const int fd = open_it(path);

		if (fd < 0 || flock(fd, LOCK_EX) < 0 ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		(void)sleep(seconds);
		/* At any other end valgrind looks for what the parent's threads have. */
		(void)raise(SIGKILL);
		_exit(0);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static void end_holder(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

struct attacher {
	pthread_t thread;
	bool only_record;
	int result;
	enum natra_code code;
	double seconds;
	char error[256];
};

static void *attach(void *arg)
{
	struct attacher *a = arg;
	struct natra_policy policy = policy_of(10, 10);
	struct natra_target target =
		pod_target(&pod, a->only_record ? "record" : "attach");
	struct natra *n = rig_open();
	struct timespec from, to;

	(void)clock_gettime(CLOCK_MONOTONIC, &from);
	a->result = a->only_record ? natra_record_unshaped(n, &target, &policy,
							   "a test")
				   : natra_attach(n, &target, &policy, NULL);
	(void)clock_gettime(CLOCK_MONOTONIC, &to);
	a->seconds = (double)(to.tv_sec - from.tv_sec) +
		     (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	a->code = natra_error_code(n);
	(void)snprintf(a->error, sizeof(a->error), "%s", natra_error(n));
	(void)natra_detach(n, &target);
	natra_close(n);
	return NULL;
}

/* Runs both at the same time, and fails the test if one has not ended after 20
 * s. */
static void run_both(struct attacher *a)
{
	struct timespec until;

	a[1].only_record = true;
	for (int i = 0; i < 2; i++)
		assert_int_equal(
			pthread_create(&a[i].thread, NULL, attach, &a[i]), 0);
	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	for (int i = 0; i < 2; i++) {
		if (pthread_timedjoin_np(a[i].thread, NULL, &until) != 0)
			fail_msg("%s hangs",
				 i ? "natra_record_unshaped" : "natra_attach");
	}
}

TH_TEST(a_pod_cannot_hold_the_lock)
{
	struct attacher a[2] = {0};
	pid_t pid = hold(open_as_nobody, "/proc/self/ns/net", 60);

	run_both(a);
	end_holder(pid);
	assert_int_equal(a[0].result, 0);
	/* Two ids are given for one interface: the second gets EBUSY, or is
	 * replaced. */
	assert_true(a[1].result == 0 || a[1].result == -EBUSY);
}

static int lock_netns(char *path, size_t size)
{
	struct stat st;
	int fd;

	assert_int_equal(fstat(pod.fd, &st), 0);
	rig_sh("mkdir -p -m 700 " BPFFS "/natra");
	(void)snprintf(path, size, BPFFS "/natra/netns_%lu",
		       (unsigned long)st.st_ino);
	assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	return fd;
}

TH_TEST(who_holds_it_is_not_waited_for_for_ever)
{
	struct attacher a[2] = {0};
	struct natra *n = rig_open();
	char path[128];
	int fd = lock_netns(path, sizeof(path));

	run_both(a);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(a[i].result, -EBUSY);
		assert_int_equal(a[i].code, NATRA_CODE_LOCKED);
		assert_true(a[i].seconds > 4 && a[i].seconds < 15);
		assert_non_null(strstr(a[i].error, path));
		assert_null(strchr(a[i].error, '\n'));
	}
	/* The garbage collection leaves a lock that somebody holds ... */
	assert_int_equal(natra_gc(n, NULL, NULL, 0, NULL), 0);
	assert_int_equal(access(path, F_OK), 0);
	(void)close(fd);
	/* ... and removes one that a killed process has left. */
	assert_int_equal(natra_gc(n, NULL, NULL, 0, NULL), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(errno, ENOENT);
	natra_close(n);
}

TH_TEST(waiting_ends_with_the_lock)
{
	struct attacher a = {0};
	char path[128];
	int fd = lock_netns(path, sizeof(path));

	assert_int_equal(pthread_create(&a.thread, NULL, attach, &a), 0);
	(void)usleep(300000);
	(void)close(fd);
	assert_int_equal(pthread_join(a.thread, NULL), 0);
	assert_int_equal(a.result, 0);
	assert_true(a.seconds < 4);
	assert_int_equal(access(path, F_OK), -1);
}

/* Writes the path of the one directory whose name begins so. */
static void find_dir(const char *prefix, char *ret_path, size_t size)
{
	FILE *found;
	char command[128];

	(void)snprintf(command, sizeof(command),
		       "find " BPFFS "/natra -type d -name '%s*' | head -n 1",
		       prefix);
	found = popen(command, "r");
	assert_non_null(found);
	assert_non_null(fgets(ret_path, (int)size, found));
	(void)pclose(found);
	ret_path[strcspn(ret_path, "\n")] = '\0';
}

/* A process that is stopped while it has a lock that all attachments share stops no other
 * process for ever, which says who it is. */
TH_TEST(a_stopped_holder_is_named)
{
	static const char *const shared[] = {"engine_", "groups"};
	const struct natra_group_info group = {
		.sz = sizeof(group),
		.name = "locks",
		.egress_rate_bits_per_sec = 1000000,
	};
	struct natra_policy policy = policy_of(10, 10);
	struct natra_target target = pod_target(&pod, "attached");
	struct natra *n = rig_open();

	assert_int_equal(natra_group_set(n, &group), 0);
	assert_int_equal(natra_attach(n, &target, &policy, NULL), 0);
	for (size_t i = 0; i < 2; i++) {
		char path[128], process[32];
		pid_t pid;

		find_dir(shared[i], path, sizeof(path));
		pid = hold(open_dir, path, 60);
		(void)snprintf(process, sizeof(process), "process %d (", pid);
		assert_int_equal(i ? natra_group_remove(n, "locks")
				   : natra_detach(n, &target),
				 -EBUSY);
		says(n, path, process);
		end_holder(pid);
	}
	assert_int_equal(natra_detach(n, &target), 1);
	assert_int_equal(natra_group_remove(n, "locks"), 1);
	assert_int_equal(natra_group_remove(n, "locks"), 0);
	natra_close(n);
}

/* Many processes that each have the lock for a while are waited for: the deadline is that of
 * each of them. */
TH_TEST(each_holder_has_its_own_time)
{
	struct attacher a = {0};
	char path[128];
	pid_t first, second;
	int fd = lock_netns(path, sizeof(path));

	(void)close(fd);
	first = hold(open_dir, path, 3);
	assert_int_equal(pthread_create(&a.thread, NULL, attach, &a), 0);
	second = hold(open_dir, path, 3);
	assert_int_equal(pthread_join(a.thread, NULL), 0);
	assert_int_equal(a.result, 0);
	assert_int_equal(waitpid(first, NULL, 0), first);
	assert_int_equal(waitpid(second, NULL, 0), second);
}

/* Gives up when it is asked for the third time. */
static bool third_time(void *arg)
{
	int *asked = arg;

	return ++*asked >= 3;
}

static struct natra *open_impatient(int *asked)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra *n = NULL;

	opts.bpffs_path = BPFFS;
	opts.cancelled_fn = third_time;
	opts.cancelled_arg = asked;
	assert_int_equal(natra_open(&n, &opts), 0);
	return n;
}

TH_TEST(a_wait_can_be_cancelled)
{
	struct natra_policy policy = policy_of(10, 10);
	struct natra_target target = pod_target(&pod, "impatient");
	struct natra_info info = NATRA_INIT(info);
	int asked = 0, fd;
	struct natra *n = open_impatient(&asked);
	char path[128], *before;

	fd = lock_netns(path, sizeof(path));
	before = rig_state();
	GIVES(-ECANCELED, natra_attach(n, &target, &policy, NULL));
	says(n, path, "cancelled: the lock of 'eth0'");
	assert_int_equal(asked, 3);
	rig_same_state(before);
	free(before);
	(void)close(fd);

	/* Who does not wait is not asked. */
	asked = 0;
	assert_int_equal(natra_attach(n, &target, &policy, &info), 0);
	assert_int_equal(asked, 0);
	/* The lock of an id is its directory, which has those of generations. */
	*strrchr(info.pin_path, '/') = '\0';
	fd = open(info.pin_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	GIVES(-ECANCELED, natra_detach(n, &target));
	says(n, info.pin_path, "cancelled: the lock of 'impatient'");
	(void)close(fd);
	assert_int_equal(natra_check(n, target.id, NULL), 0);
	assert_int_equal(natra_detach(n, &target), 1);
	natra_close(n);
}

/* Each lock that the library takes is another one's at first, while this is set. */
static bool is_busy, was_refused;

/* Takes the place of libc's function, also for the library. */
int flock(int fd, int operation)
{
	int (*lock)(int, int);

	*(void **)&lock = dlsym(RTLD_NEXT, __func__);
	if (is_busy && operation == (LOCK_EX | LOCK_NB)) {
		was_refused = !was_refused;
		if (was_refused) {
			errno = EWOULDBLOCK;
			return -1;
		}
	}
	return lock(fd, operation);
}

static bool from_then_on(void *arg)
{
	int *left = arg;

	return --*left <= 0;
}

/* Whenever the program is to end, nothing that was attached to load programs stays. */
TH_TEST(a_cancelled_preload_leaves_no_attachment)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_policy policy = policy_of(10, 10);
	struct natra_target target = pod_target(&pod, "preloads");
	struct natra_info info = NATRA_INIT(info);
	struct natra *n = NULL;
	int left, r = -ECANCELED, cancelled = 0;

	opts.bpffs_path = BPFFS;
	opts.keep_programs = true;
	opts.cancelled_fn = from_then_on;
	opts.cancelled_arg = &left;
	assert_int_equal(natra_open(&n, &opts), 0);
	for (int at = 1; r == -ECANCELED; at++) {
		left = at;
		is_busy = true;
		was_refused = false;
		r = natra_preload(n, &target, &policy, NULL);
		is_busy = false;
		assert_true(r == 0 || r == -ECANCELED);
		cancelled += r != 0;
		assert_int_equal(natra_query(n, "preloads", &info), -ENOENT);
	}
	/* The lock of the namespace and that of the id are waited for before anything is attached. */
	assert_true(cancelled >= 2);
	natra_close(n);
}

/* Forks in the middle of a call, as another thread may do. The child has copies of all
 * descriptors. */
static void fork_once(void *arg, enum natra_log_level level, const char *line)
{
	pid_t *child = arg;

	(void)level;
	(void)line;
	if (*child)
		return;
	*child = fork();
	if (*child == 0) {
		(void)sleep(30);
		_exit(0);
	}
}

TH_TEST(a_forked_child_keeps_no_lock)
{
	struct natra_open_opts opts = NATRA_INIT(opts);
	struct natra_policy policy = policy_of(10, 10);
	struct natra_target target = pod_target(&pod, "forks");
	struct natra *n = NULL, *other = rig_open();
	pid_t child = 0;

	opts.bpffs_path = BPFFS;
	opts.log_fn = fork_once;
	opts.log_arg = &child;
	assert_int_equal(natra_open(&n, &opts), 0);
	OK(natra_attach(n, &target, &policy, NULL));
	assert_true(child > 0);
	OK(natra_configure(other, "forks", &policy));
	assert_int_equal(natra_detach(other, &target), 1);
	end_holder(child);
	natra_close(other);
	natra_close(n);
}

RIG_MAIN(begin, end)
