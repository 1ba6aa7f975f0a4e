/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: launch PROGRAM [CGROUP] <STDIN-FILE >OUTPUT
 *
 * Runs PROGRAM once, in the cgroup of version 2 whose directory is CGROUP if it
 * is given, and prints its cost on stderr: wall time in ns, CPU time in us (user
 * and system), peak RSS in KiB, and the exit code. This is a small program
 * because until exec a child's peak RSS is that of its parent: Python's would
 * hide a small plugin's.
 */
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long us(struct timeval t)
{
	return t.tv_sec * 1000000L + t.tv_usec;
}

/*
 * The child is born in the cgroup: to move there would wait for a grace period
 * of RCU, which would count as the program's time.
 */
static pid_t fork_into(int cgroup)
{
	struct clone_args args = {.exit_signal = SIGCHLD};

	if (cgroup >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = cgroup;
	}
	return syscall(SYS_clone3, &args, sizeof(args));
}

int main(int argc, char **argv)
{
	char *program[] = {argv[1], NULL};
	struct rusage used;
	int64_t begin;
	int cgroup = -1;
	int status;
	pid_t pid;

	if (argc < 2 || argc > 3)
		return 2;
	if (argc == 3) {
		cgroup = open(argv[2], O_DIRECTORY | O_RDONLY | O_CLOEXEC);
		if (cgroup < 0) {
			perror(argv[2]);
			return 2;
		}
	}
	begin = now_ns();
	pid = fork_into(cgroup);
	if (pid == 0) {
		(void)execv(program[0], program);
		_exit(2);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid) {
		perror("clone3");
		return 2;
	}
	begin = now_ns() - begin;
	(void)fprintf(stderr, "%lld %ld %ld %d\n", (long long)begin,
		      us(used.ru_utime) + us(used.ru_stime), used.ru_maxrss,
		      WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}
