/* SPDX-License-Identifier: BSD-2-Clause */
/* Which container runtimes a node has, and whether they read drop-ins. */
#pragma once

#include <stdbool.h>

struct runtimes {
	bool known;        /* at least one was found */
	bool read_dropins; /* all that were found do */
	char *text;        /* such as "containerd 2.1.4"; NULL: none */
};

/* From "containerd://2.1.4", as a node's status has it; false: no version. */
bool runtime_parse(const char *text, struct runtimes *ret);
/* Asks the programs below a root. */
void runtime_find(int root_fd, struct runtimes *ret);
void runtime_free(struct runtimes *runtimes);
