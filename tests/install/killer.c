/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a program and kills it with SIGKILL after its system call number N.
 *
 * usage: killer N PROGRAM [ARGUMENT...]
 *
 * Prints "killed", or "exit CODE CALLS" if the program ended before that, as it
 * always does if N is 0. Before that line, a line "changes N" is printed for each
 * call that can change a file or a directory. The program's children are not killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(char **argv)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(126);
	(void)execv(argv[0], argv);
	_exit(127);
}

/* Lets the process run to its next stop. Returns false if it has ended. */
static int next_stop(pid_t pid, int pass_signal, int *ret_status)
{
	if (ptrace(PTRACE_SYSCALL, pid, NULL, (long)pass_signal) < 0)
		return 0;
	while (waitpid(pid, ret_status, 0) < 0) {
		if (errno != EINTR)
			return 0;
	}
	return WIFSTOPPED(*ret_status);
}

/* Returns whether the call that the process is about to make can change a file. */
static int changes(pid_t pid)
{
	struct __ptrace_syscall_info info;

	/* This request takes a size where others take an address.
	 * NOLINTNEXTLINE(performance-no-int-to-ptr) */
	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info) <=
		    0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return 1;
	switch (info.entry.nr) {
	case SYS_openat:
		return (info.entry.args[2] & O_CREAT) != 0;
	case SYS_write:
		return info.entry.args[0] > STDERR_FILENO;
	case SYS_fchmod:
	case SYS_fsync:
	case SYS_ftruncate:
	case SYS_linkat:
	case SYS_mkdirat:
	case SYS_renameat:
	case SYS_renameat2:
	case SYS_unlinkat:
		return 1;
	default:
		return 0;
	}
}

int main(int argc, char **argv)
{
	unsigned long wanted, calls = 0;
	int status = 0, inside = 0, pass_signal = 0;
	pid_t pid;

	if (argc < 3)
		return 2;
	wanted = strtoul(argv[1], NULL, 10);
	pid = fork();
	if (pid == 0)
		start(argv + 2);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
		return 1;
	(void)ptrace(PTRACE_SETOPTIONS, pid, NULL,
		     (long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	while (next_stop(pid, pass_signal, &status)) {
		int is_call = WSTOPSIG(status) == (SIGTRAP | 0x80);

		pass_signal = is_call || WSTOPSIG(status) == SIGTRAP
				      ? 0
				      : WSTOPSIG(status);
		if (!is_call)
			continue;
		inside = !inside;
		if (inside && wanted == 0 && changes(pid))
			printf("changes %lu\n", calls + 1);
		if (inside || ++calls != wanted)
			continue;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
		puts("killed");
		return 0;
	}
	printf("exit %d %lu\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
	       calls);
	return 0;
}
