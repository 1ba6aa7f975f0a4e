/* SPDX-License-Identifier: BSD-2-Clause */
/* Network namespaces: finding them, and working in one without moving the
 * caller's thread. */
#ifndef NATRA_NETNS_H
#define NATRA_NETNS_H

#include <stdint.h>

#include "handle.h"

/* Inode numbers are used again after a namespace died, cookies are not. */
struct netns_id {
	uint64_t inode;
	uint64_t cookie;
};

/* Opens target->netns or duplicates target->netns_fd; -1 in *ret_fd means the
 * caller's own. */
int netns_open(struct natra *n, const struct natra_target *target, int *ret_fd);

/* Finds a live namespace by its id: hint_fd if not -1, the handle's index if it
 * has one, /run/netns, /proc. *ret_fd is -1 if it is the caller's own. -ENOENT,
 * without an error text: not found. */
int netns_find(const struct natra *n, const struct netns_id *id, int hint_fd,
	       int *ret_fd);

/* The namespace at `path`, if it has the inode number and, with the second, the
 * cookie of `id`; else -ENOENT. */
int netns_open_inode(const char *path, const struct netns_id *id);
int netns_open_if(const char *path, const struct netns_id *id);

/* A namespace, by one look at all paths that lead to one now; -ENOENT: none does. */
int netns_scan(const struct netns_id *id);

/* Calls cb for all in /run/netns, then for those of all processes, as long as it
 * returns -ENOENT; returns what cb returned last. */
int netns_foreach_path(int (*cb)(void *arg, const char *path, uint64_t inode),
		       void *arg);

/* The inode number of a namespace (-1: of the caller's own), which no other has
 * while it lives. */
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

/* The same in a mount namespace, and on a thread that may go wherever it wants.
 * There is no error text. */
int netns_run_in_mounts(int mnt_fd, int (*fn)(void *arg), void *arg);
int netns_run_apart(int (*fn)(void *arg), void *arg);

#endif
