/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface between the server, which runs a program again and again, and
 * the code that makes the calls of one run fail. */
#ifndef FAULTS_SERVE_H
#define FAULTS_SERVE_H

/* Begins a run; its log is written to log_fd. */
void inject_begin(const char *mode, const char *at, const char *error,
		  int log_fd);

int __libc_start_main(int (*fn)(int argc, char **argv, char **envp), int argc,
		      char **argv, void (*init)(void), void (*fini)(void),
		      void (*rtld_fini)(void), void *stack);

#endif
