/* SPDX-License-Identifier: BSD-2-Clause */
/* The container runtimes that a node has, and whether they read drop-ins. */
#ifndef NATRA_INSTALL_RUNTIME_H
#define NATRA_INSTALL_RUNTIME_H

#include <stdbool.h>

enum runtime_kind {
	RUNTIME_CONTAINERD = 1,
	RUNTIME_CRIO = 2,
	RUNTIME_DOCKER = 4, /* by cri-dockerd, whatever containerd Docker has */
};

struct runtimes {
	bool known;         /* at least one was found */
	unsigned int kinds; /* of those that were found */
	bool read_dropins;  /* all that were found read them */
	char *text;         /* e.g. "containerd 2.1.4"; NULL: none found */
};

/* Reads the version from a text such as "containerd://2.1.4", as a node's
 * status has it. Returns false if the text has no version. */
bool runtime_parse(const char *text, struct runtimes *ret);
/* Asks the runtimes' programs below a root for their versions: that which kubelet uses, if
 * its configuration says so, else all. */
void runtime_find(int root_fd, struct runtimes *ret);
void runtime_free(struct runtimes *runtimes);

#endif
