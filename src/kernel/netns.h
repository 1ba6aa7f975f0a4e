/* SPDX-License-Identifier: BSD-2-Clause */
/* Network namespaces: what they are, and working in one without moving the
 * caller's thread. */
#ifndef NATRA_KERNEL_NETNS_H
#define NATRA_KERNEL_NETNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/handle.h"

/* The directory of the namespaces that have a name. */
#define NETNS_NAMED_DIR "/run/netns"

/* Inode numbers are used again after a namespace died, cookies are not. */
struct netns_id {
	uint64_t inode;
	uint64_t cookie;
};

/* Opens target->netns or duplicates target->netns_fd; -1 in *ret_fd means the
 * caller's own, also if it was named. */
int netns_open(struct natra *n, const struct natra_target *target, int *ret_fd);

/* Returns whether a path or name leads to an empty file, as it is left where a namespace was
 * mounted. */
bool netns_is_left(const char *netns);

/* Returns 0 if the descriptor is of a network namespace, and -EINVAL if it is
 * of something else. */
int netns_check(int fd);

/* Returns 1 if the descriptor is of that namespace, 0 if it is of another. */
int netns_is(int fd, const struct netns_id *id);

/* Gets the inode number of a namespace (fd -1: the caller's own). No other
 * namespace has the same number while this one exists. */
int netns_inode(struct natra *n, int fd, uint64_t *ret_inode);

/* Identifies the namespace that the calling thread is in. `fd` is a descriptor
 * of it, or -1; then it is found in /proc, which takes longer, for a new thread
 * most of all. */
int netns_self(int fd, struct netns_id *ret_id);

/* Returns 1 if the namespace of the calling thread has an interface of that
 * index, 0 if not, or -errno without an error text. */
int netns_has_link(uint32_t ifindex);

/* netns_run() takes this for a new namespace, which ends with the thread. */
#define NETNS_NEW (-2)

/*
 * Runs fn(arg) in a namespace, on a short-lived thread; if fd is -1, on the
 * calling thread. Returns what fn returned, or why it could not be run. An
 * error of this function has no text if n is NULL.
 */
int netns_run(struct natra *n, int fd, int (*fn)(void *arg), void *arg);

/* netns_run_in_mounts does the same in a mount namespace. netns_run_apart runs
 * fn on a thread of its own that fn may move into any namespace. Neither sets
 * an error text. */
int netns_run_in_mounts(int mnt_fd, int (*fn)(void *arg), void *arg);
int netns_run_apart(int (*fn)(void *arg), void *arg);

#endif
