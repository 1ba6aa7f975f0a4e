/* SPDX-License-Identifier: BSD-2-Clause */
/* flock(2) on a directory, which the holder of the lock may remove. */
#ifndef NATRA_STATE_LOCK_H
#define NATRA_STATE_LOCK_H

#include "base/handle.h"

/* The longest that one process may hold a lock while others wait. Nothing of natra's takes
 * that long, but a process may be stopped: by ^Z, by a frozen cgroup, by a disk that hangs. */
#define LOCK_DEADLINE_MS 5000U

enum lock_wait {
	LOCK_ONCE, /* tries once */
	/* Before a call has changed anything: the handle's cancelled_fn can end the wait. */
	LOCK_BEFORE,
	LOCK_AMID,
};

/*
 * Locks the directory at `path` until unlock_dir(ret_fd). Returns -EAGAIN,
 * without an error text, if there is no such directory or it went away
 * meanwhile, -EBUSY if one other process held the lock for LOCK_DEADLINE_MS (or several,
 * 12 times as long), which the error text names, and -ECANCELED. Holders that this process
 * cannot see, from another pid namespace, count as one.
 */
int lock_dir(struct natra *n, const char *path, enum lock_wait wait,
	     int *ret_fd);

/* Locks the directory together with others who share it, or returns -EBUSY. It must not
 * be removed meanwhile. */
int lock_dir_shared(struct natra *n, const char *path, int *ret_fd);

/* Unlocks the directory, if *fd is not negative, and closes *fd. To close it alone would not do:
 * a process that another thread has forked meanwhile has the lock by its copy of it. */
void unlock_dir(const int *fd);

#define cleanup_lock __attribute__((cleanup(unlock_dir)))

#endif
