/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LD_PRELOAD with INJECT_SERVE set: the program starts once, and runs its main
 * in a child for each request. This saves the time of the loader and of the
 * libraries, which is longer than most of what the tests run in natractl.
 *
 * A request on stdin is its length (u32), then strings that each end with '\0':
 * mode, number and errno of the fault, what the program reads from its stdin,
 * the number of variables in its environment, these variables, and its
 * arguments. The answer on stdout is the status as of waitpid, the lengths
 * (u32) of its stdout, its stderr and the log of inject.c, and these three.
 */
#include "serve.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST_MAX  65536
#define STRINGS_MAX  256
#define HANG_SECONDS 20

typedef int (*main_fn)(int argc, char **argv, char **envp);

enum { TO_STDOUT, TO_STDERR, TO_LOG, TO_MAX };

static main_fn program;

static void must(int condition)
{
	if (!condition)
		_exit(99);
}

static int read_all(int fd, void *data, size_t len)
{
	char *at = data;

	while (len > 0) {
		ssize_t r = read(fd, at, len);

		if (r <= 0)
			return -1;
		at += r;
		len -= (size_t)r;
	}
	return 0;
}

static void write_all(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t r = write(fd, at, len);

		must(r > 0);
		at += r;
		len -= (size_t)r;
	}
}

static size_t split(char *text, size_t len, char **ret)
{
	size_t count = 0;

	for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
		must(count < STRINGS_MAX);
		ret[count++] = text + at;
	}
	ret[count] = NULL;
	return count;
}

/* Runs the program's main in the child, and does not return. */
static void run(char **strings, size_t count, const int *fds)
{
	size_t env_len = strtoul(strings[4], NULL, 10);
	char *envp[STRINGS_MAX + 1] = {NULL};
	char **argv = strings + 5 + env_len;
	int in = memfd_create("stdin", MFD_CLOEXEC);

	must(in >= 0 && count > 5 + env_len);
	write_all(in, strings[3], strlen(strings[3]));
	must(lseek(in, 0, SEEK_SET) == 0);
	must(dup2(in, STDIN_FILENO) >= 0 &&
	     dup2(fds[TO_STDOUT], STDOUT_FILENO) >= 0 &&
	     dup2(fds[TO_STDERR], STDERR_FILENO) >= 0);
	(void)close(in);
	(void)close(fds[TO_STDOUT]);
	(void)close(fds[TO_STDERR]);
	memcpy(envp, strings + 5, env_len * sizeof(*envp));
	environ = envp;
	(void)alarm(HANG_SECONDS);
	inject_begin(strings[0], strings[1], strings[2], fds[TO_LOG]);
	exit(program((int)(count - 5 - env_len), argv, envp));
}

static void answer(int status, const int *fds)
{
	static char text[1 << 20];
	uint32_t head[1 + TO_MAX] = {(uint32_t)status};

	for (int i = 0; i < TO_MAX; i++)
		head[1 + i] = (uint32_t)lseek(fds[i], 0, SEEK_END);
	write_all(STDOUT_FILENO, head, sizeof(head));
	for (int i = 0; i < TO_MAX; i++) {
		must(head[1 + i] <= sizeof(text) &&
		     pread(fds[i], text, head[1 + i], 0) ==
			     (ssize_t)head[1 + i]);
		write_all(STDOUT_FILENO, text, head[1 + i]);
		(void)close(fds[i]);
	}
}

static int serve(int argc, char **argv, char **envp)
{
	static char request[REQUEST_MAX + 1];
	static char *strings[STRINGS_MAX + 1];
	uint32_t len;

	(void)argc;
	(void)argv;
	(void)envp;
	while (read_all(STDIN_FILENO, &len, sizeof(len)) == 0) {
		int fds[TO_MAX], status = 0;
		size_t count;
		pid_t child;

		must(len <= REQUEST_MAX &&
		     read_all(STDIN_FILENO, request, len) == 0);
		request[len] = '\0';
		count = split(request, len, strings);
		must(count > 5);
		for (int i = 0; i < TO_MAX; i++) {
			fds[i] = memfd_create("output", MFD_CLOEXEC);
			must(fds[i] >= 0);
		}
		child = fork();
		must(child >= 0);
		if (child == 0)
			run(strings, count, fds);
		must(waitpid(child, &status, 0) == child);
		answer(status, fds);
	}
	return 0;
}

int __libc_start_main(main_fn fn, int argc, char **argv, void (*init)(void),
		      void (*fini)(void), void (*rtld_fini)(void), void *stack)
{
	int (*start)(main_fn, int, char **, void (*)(void), void (*)(void),
		     void (*)(void), void *);

	*(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
	program = fn;
	return start(getenv("INJECT_SERVE") ? serve : fn, argc, argv, init,
		     fini, rtld_fini, stack);
}
