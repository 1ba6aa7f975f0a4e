/* SPDX-License-Identifier: BSD-2-Clause */
/* Network namespaces: finding them, and working in one without moving the
 * caller's thread. */
#ifndef NATRA_KERNEL_NETNS_H
#define NATRA_KERNEL_NETNS_H

#include <stdint.h>

#include "base/handle.h"

/* Inode numbers are used again after a namespace died, cookies are not. */
struct netns_id {
	uint64_t inode;
	uint64_t cookie;
};

/* Opens target->netns or duplicates target->netns_fd; -1 in *ret_fd means the
 * caller's own. */
int netns_open(struct natra *n, const struct natra_target *target, int *ret_fd);

/* Finds a live namespace by its id: tries hint_fd if not -1, the handle's index
 * if it has one, /run/netns, /proc. *ret_fd is -1 if it is the caller's own.
 * Returns -ENOENT, without an error text, if it is not found. */
int netns_find(const struct natra *n, const struct netns_id *id, int hint_fd,
	       int *ret_fd);

/* Both open the namespace at `path` and return its descriptor if it has the
 * inode number of `id`, and for netns_open_if also its cookie; else -ENOENT. */
int netns_open_inode(const char *path, const struct netns_id *id);
int netns_open_if(const char *path, const struct netns_id *id);

/* Opens a namespace after one look at all paths that lead to any now. Returns
 * -ENOENT if none leads to it. */
int netns_scan(const struct netns_id *id);

/* Calls cb for each namespace in /run/netns, then for those of all processes,
 * as long as cb returns -ENOENT. Returns what cb returned last. */
int netns_foreach_path(int (*cb)(void *arg, const char *path, uint64_t inode),
		       void *arg);

/* Gets the inode number of a namespace (fd -1: the caller's own). No other
 * namespace has the same number while this one lives. */
int netns_inode(struct natra *n, int fd, uint64_t *ret_inode);

/* The namespace that the calling thread is in. `fd` is a descriptor of it, or -1: to
 * find it in /proc takes longer, of a new thread most of all. */
int netns_self(int fd, struct netns_id *ret_id);

/* For netns_run: a namespace of its own, which goes with the thread. */
#define NETNS_NEW (-2)

/*
 * Runs fn(arg) in a namespace, on a short-lived thread; fd -1: in place.
 * Returns what fn returned, or why it could not be run.
 */
int netns_run(struct natra *n, int fd, int (*fn)(void *arg), void *arg);

/* netns_run_in_mounts does the same in a mount namespace. netns_run_apart runs
 * fn on a thread of its own that fn may move into any namespace. Neither sets
 * an error text. */
int netns_run_in_mounts(int mnt_fd, int (*fn)(void *arg), void *arg);
int netns_run_apart(int (*fn)(void *arg), void *arg);

#endif
