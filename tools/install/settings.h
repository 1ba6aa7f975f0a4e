/* SPDX-License-Identifier: BSD-2-Clause */
/* What the runtimes' own configuration says of their lists and plugins. */
#ifndef NATRA_INSTALL_SETTINGS_H
#define NATRA_INSTALL_SETTINGS_H

#include <stddef.h>

#include "runtime.h"

#define SETTINGS_BIN_MAX 8

struct settings_of_runtime {
	char *file;    /* that says the following; NULL: none does */
	char *net_dir; /* NULL: it does not say which */
	char *bin_dirs[SETTINGS_BIN_MAX];
	size_t bin_len;
	char *network; /* whose list a pod gets; NULL: that of the first list */
	long lists_max; /* how many lists a pod gets; 0: all of them */
	char *wrong; /* the file that cannot be read, and where; NULL: none */
};

/* Reads those of the runtime that kubelet uses, or of the only one that the node has.
 * `containerd` is the path of containerd's file. */
void settings_look(int root_fd, const struct runtimes *runtimes,
		   const char *containerd, struct settings_of_runtime *ret);
void settings_clear(struct settings_of_runtime *settings);

#endif
