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

/* Finds a live namespace by its id: hint_fd if not -1, /run/netns, /proc.
 * *ret_fd is -1 if it is the caller's own. -ENOENT, without an error text: not
 * found. */
int netns_find(const struct netns_id *id, int hint_fd, int *ret_fd);

/* Excludes other attachers to the interfaces of a namespace (-1: the caller's
 * own) until the descriptor is closed. */
int netns_lock(struct natra *n, int fd, int *ret_lock_fd);

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

#endif
