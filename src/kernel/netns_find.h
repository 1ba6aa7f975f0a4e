/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding network namespaces by what a record says of them: one at a time, or
 * with an index of all that can be found, which is made once for a walk over
 * many attachments. Each namespace that is found is verified by its cookie, as
 * the kernel uses inode numbers again. */
#ifndef NATRA_KERNEL_NETNS_FIND_H
#define NATRA_KERNEL_NETNS_FIND_H

#include <stddef.h>

#include "kernel/netns.h"

/* Finds a namespace by its id: tries hint_fd if not -1, the handle's index
 * if it has one, /run/netns, /proc. *ret_fd is -1 if it is the caller's own.
 * Returns -ENOENT, without an error text, if it is not found. */
int netns_find(const struct natra *n, const struct netns_id *id, int hint_fd,
	       int *ret_fd);

/* Whether an interface that a record names exists. */
struct netns_lookup {
	struct netns_id netns;
	uint32_t ifindex;
	int exists; /* 1: yes; 0: no; -errno: not known */
};

/* Makes an index of /run/netns and /proc. Sets no error text; returns -ENOENT
 * without /proc. A namespace that was recorded before this and is not in the
 * index does not exist any more. One that is recorded later must not be looked
 * up in it. */
int netns_index_make(struct netns_index **ret_index);
void netns_index_free(struct netns_index **index);
#define cleanup_netns_index __attribute__((cleanup(netns_index_free)))

/* Sets `exists` of each, on one thread that visits their namespaces.
 * Returns -errno, without an error text, if no thread could be started. */
int netns_index_look(struct netns_index *index, struct netns_lookup **lookups,
		     size_t len);

#endif
