/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: launch PROGRAM [CGROUP] <STDIN-FILE >OUTPUT
 *
 * Runs PROGRAM once, in the directory CGROUP of a cgroup if there is one, and
 * prints its cost on stderr: wall time in ns, CPU time in us (user and system),
 * peak RSS in KiB, and the exit code. This is a small program because until exec
 * a child's peak RSS is that of its parent: Python's would hide a small plugin's.
 */
#include <fcntl.h>
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

static int run(char **argv, const char *cgroup)
{
	char path[4096];
	int fd;

	if (cgroup) {
		(void)snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, "0", 1) != 1)
			return 2;
	}
	(void)execv(argv[0], argv);
	return 2;
}

int main(int argc, char **argv)
{
	char *program[] = {argv[1], NULL};
	struct rusage used;
	int64_t begin;
	int status;
	pid_t pid;

	if (argc < 2 || argc > 3)
		return 2;
	begin = now_ns();
	pid = fork();
	if (pid == 0)
		_exit(run(program, argv[2]));
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid)
		return 2;
	begin = now_ns() - begin;
	(void)fprintf(stderr, "%lld %ld %ld %d\n", (long long)begin,
		      us(used.ru_utime) + us(used.ru_stime), used.ru_maxrss,
		      WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}
