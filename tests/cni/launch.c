/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: launch PROGRAM <STDIN-FILE >OUTPUT
 *
 * Runs PROGRAM once and prints its cost on stderr: wall time in ns, CPU time in
 * us (user and system), peak RSS in KiB, and the exit code. This is a small
 * program because until exec a child's peak RSS is that of its parent: Python's
 * would hide a small plugin's.
 */
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
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

int main(int argc, char **argv)
{
	struct rusage used;
	int64_t begin;
	int status;
	pid_t pid;

	if (argc != 2)
		return 2;
	begin = now_ns();
	if (posix_spawn(&pid, argv[1], NULL, NULL, argv + 1, environ) != 0)
		return 2;
	if (wait4(pid, &status, 0, &used) != pid)
		return 2;
	begin = now_ns() - begin;
	(void)fprintf(stderr, "%lld %ld %ld %d\n", (long long)begin,
		      us(used.ru_utime) + us(used.ru_stime), used.ru_maxrss,
		      WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}
