/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a program for its answer. */
#pragma once

/*
 * The program is a descriptor; argv and env end in NULL. `input` is what it reads
 * from standard input, NULL: nothing. The caller frees *ret_output, its
 * standard output. The exit code; or the program is killed, -ETIMEDOUT: it has not
 * ended after 10 s, -EFBIG: it has written over 64 KiB; -ENOEXEC: it cannot be run;
 * -ECHILD: a signal ended it.
 */
int program_run(int fd, const char *const *argv, const char *const *env,
		const char *input, char **ret_output);
