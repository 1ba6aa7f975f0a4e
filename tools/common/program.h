/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a program to get its output. */
#ifndef NATRA_COMMON_PROGRAM_H
#define NATRA_COMMON_PROGRAM_H

/*
 * Runs the program that the descriptor is of; argv and env end in NULL. `input` is what
 * it reads from standard input, NULL for nothing. The caller frees *ret_output, the
 * program's standard output. Returns its exit code; -ETIMEDOUT if it has not ended
 * after 10 s and -EFBIG if it has written over 64 KiB, and then it is killed; -ENOEXEC
 * if it cannot be run; -ECHILD if a signal ended it. With a root_fd other than -1, that
 * directory is the program's root if it cannot be run in this process's own: a
 * container lacks the libraries of the node's programs.
 */
int program_run(int fd, int root_fd, const char *const *argv,
		const char *const *env, const char *input, char **ret_output);
/* Runs a program without input. *ret_output has what it wrote to standard error,
 * too. */
int program_run_all(int fd, const char *const *argv, const char *const *env,
		    char **ret_output);

#endif
