/* SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "text.h"

#define OUTPUT_MAX 65536
#define TIMEOUT_MS 10000
#define CANNOT_RUN 127

static long now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns a descriptor of a new file with the input. It is no pipe, so that a
 * program which does not read its input cannot block this one. */
static int make_input(const char *input)
{
	int fd = memfd_create("natra-input", MFD_CLOEXEC);
	size_t len = input ? strlen(input) : 0;

	if (fd < 0)
		return -errno;
	if (write(fd, input ? input : "", len) != (ssize_t)len ||
	    lseek(fd, 0, SEEK_SET) < 0) {
		(void)close(fd);
		return -EIO;
	}
	return fd;
}

struct program {
	int fd;
	int root_fd;
	const char *const *argv;
	const char *const *env;
	bool with_errors; /* standard error goes where standard output goes */
};

static void execute(const struct program *program)
{
	char *const *argv = (char *const *)program->argv;
	char *const *env = (char *const *)program->env;

	(void)fexecve(program->fd, argv, env);
	if (program->root_fd >= 0 && fchdir(program->root_fd) == 0 &&
	    chroot(".") == 0)
		(void)fexecve(program->fd, argv, env);
	_exit(CANNOT_RUN);
}

static void run_child(const struct program *program, int input_fd,
		      int output_fd)
{
	int error_fd = program->with_errors
			       ? output_fd
			       : open("/dev/null", O_WRONLY | O_CLOEXEC);

	/* The descriptor stays open over exec, because the interpreter of a
	 * script opens the script by it. */
	if (fcntl(program->fd, F_SETFD, 0) < 0 ||
	    dup2(input_fd, STDIN_FILENO) < 0 ||
	    dup2(output_fd, STDOUT_FILENO) < 0 ||
	    (error_fd >= 0 && dup2(error_fd, STDERR_FILENO) < 0))
		_exit(CANNOT_RUN);
	execute(program);
}

/* Waits until there is something to read. Returns -ETIMEDOUT at the
 * deadline. */
static int wait_for(int fd, long deadline_ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	for (;;) {
		long left_ms = deadline_ms - now_ms();
		int r = left_ms <= 0 ? 0 : poll(&p, 1, (int)left_ms);

		if (r > 0)
			return 0;
		if (r == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

/* Reads up to the end of the output. Returns -EFBIG if it is over
 * OUTPUT_MAX. */
static int collect(int fd, char *output, long deadline_ms)
{
	size_t len = 0;

	for (;;) {
		int r = wait_for(fd, deadline_ms);
		ssize_t n;

		if (r < 0)
			return r;
		/* One byte more than the limit is read, which shows that it was
		 * passed. */
		n = read(fd, output + len, OUTPUT_MAX + 1 - len);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		len += n > 0 ? (size_t)n : 0;
		if (len > OUTPUT_MAX)
			return -EFBIG;
	}
}

/* Waits until the program ends, which may still run after it has closed its
 * output. */
static int wait_for_end(pid_t pid, long deadline_ms)
{
	cleanup_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : wait_for(fd, deadline_ms);
}

static int finish(pid_t pid, int r, long deadline_ms)
{
	int status;

	if (r == 0)
		r = wait_for_end(pid, deadline_ms);
	if (r < 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (r < 0)
		return r;
	if (!WIFEXITED(status))
		return -ECHILD;
	return WEXITSTATUS(status) == CANNOT_RUN ? -ENOEXEC
						 : WEXITSTATUS(status);
}

static int run(const struct program *program, const char *input,
	       char **ret_output)
{
	cleanup_text char *output = memory_new(OUTPUT_MAX + 1);
	cleanup_close int input_fd = make_input(input);
	long deadline_ms = now_ms() + TIMEOUT_MS;
	int ends[2], r;
	pid_t pid;

	if (input_fd < 0)
		return input_fd;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		run_child(program, input_fd, ends[1]);
	r = pid < 0 ? -errno : 0;
	(void)close(ends[1]);
	if (pid > 0)
		r = finish(pid, collect(ends[0], output, deadline_ms),
			   deadline_ms);
	(void)close(ends[0]);
	if (r >= 0)
		*ret_output = text_copy(output);
	return r;
}

int program_run(int fd, int root_fd, const char *const *argv,
		const char *const *env, const char *input, char **ret_output)
{
	const struct program program = {fd, root_fd, argv, env, false};

	return run(&program, input, ret_output);
}

int program_run_all(int fd, const char *const *argv, const char *const *env,
		    char **ret_output)
{
	const struct program program = {fd, -1, argv, env, true};

	return run(&program, NULL, ret_output);
}
