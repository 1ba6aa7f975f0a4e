/* SPDX-License-Identifier: BSD-2-Clause */
/* An index of all network namespaces that can be found, made once for a walk
 * over many attachments. Each namespace that is found by it is verified by its
 * cookie, as the kernel uses inode numbers again. */
#ifndef NATRA_KERNEL_NETNS_INDEX_H
#define NATRA_KERNEL_NETNS_INDEX_H

#include <stddef.h>

#include "kernel/netns.h"

/* An interface that a record names. */
struct netns_seat {
	struct netns_id netns;
	uint32_t ifindex;
	int exists; /* 1: yes; 0: it is gone; -errno: not known */
};

/* Makes an index of /run/netns and /proc. Sets no error text; returns -ENOENT
 * without /proc. A namespace that was recorded before this and is not in the
 * index is gone. One that is recorded later must not be looked up in it. */
int netns_index_make(struct netns_index **ret_index);
void netns_index_free(struct netns_index **index);
#define cleanup_netns_index __attribute__((cleanup(netns_index_free)))

/* Sets `exists` of each seat, on one thread that visits their namespaces.
 * Returns -errno, without an error text, if no thread could be started. */
int netns_index_look(struct netns_index *index, struct netns_seat **seats,
		     size_t len);

/* Opens a namespace. Returns -ENOENT if it is not in the index, but may be
 * found elsewhere, and -ESRCH if it is gone. */
int netns_index_open(const struct netns_index *index,
		     const struct netns_id *id);

#endif
