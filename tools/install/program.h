/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a program for its answer. */
#pragma once

/*
 * The program is a descriptor; argv and env end in NULL. `input` is what it reads
 * from standard input, NULL: nothing. The caller frees *ret_output, which has at
 * most 64 KiB of its standard output. The exit code; -ETIMEDOUT after 10 s, and
 * the program is killed; -ENOEXEC: it cannot be run; -ECHILD: a signal ended it.
 */
int program_run(int fd, const char *const *argv, const char *const *env,
		const char *input, char **ret_output);
