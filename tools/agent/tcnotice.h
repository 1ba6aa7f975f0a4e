/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel tells of changes of filters, in the process's network namespace. */
#ifndef NATRA_AGENT_TCNOTICE_H
#define NATRA_AGENT_TCNOTICE_H

#include <stdbool.h>
#include <stdint.h>

/* Returns a socket that can be waited for, or -errno. */
int tcnotice_open(void);

/* Reads some notices, and calls fn for each interface on whose hooks a filter has come or gone,
 * or its qdisc with all of them. *ret_any becomes true if fn returned true. Returns 0, or -ENOBUFS
 * if notices were lost. */
int tcnotice_read(int fd, bool (*fn)(void *arg, uint32_t ifindex), void *arg,
		  bool *ret_any);

#endif
