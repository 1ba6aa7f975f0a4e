/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All network namespaces that can be found, looked for once: for walks over many
 * attachments. What is found is verified by its cookie, as inode numbers are
 * used again.
 */
#ifndef NATRA_NETNS_INDEX_H
#define NATRA_NETNS_INDEX_H

#include <stddef.h>

#include "netns.h"

/* An interface that a record names. */
struct netns_seat {
	struct netns_id netns;
	uint32_t ifindex;
	int exists; /* 1; 0: it is gone; -errno: that could not be found out */
};

/*
 * Reads /run/netns and /proc; no error text. -ENOENT without /proc. A namespace that was recorded before
 * and is not found here is gone. What is recorded later must not be looked up.
 */
int netns_index_make(struct netns_index **ret_index);
void netns_index_free(struct netns_index **index);
#define cleanup_netns_index __attribute__((cleanup(netns_index_free)))

/* Sets `exists` of each seat, on one thread that visits their namespaces. Returns why no thread could be started; no error text. */
int netns_index_look(struct netns_index *index, struct netns_seat **seats,
		     size_t len);

/* A namespace; -ENOENT: it is not here, and may be found elsewhere; -ESRCH: it is
 * gone. */
int netns_index_open(const struct netns_index *index,
		     const struct netns_id *id);

#endif
