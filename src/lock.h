/* SPDX-License-Identifier: BSD-2-Clause */
/* flock(2) on a directory, which may be removed by who holds it. */
#ifndef NATRA_LOCK_H
#define NATRA_LOCK_H

#include "handle.h"

/* As long as it takes: natra's own directories, which root alone can open. Their
 * holders end soon, or die, and then the kernel lets go. */
#define LOCK_NO_DEADLINE (~0U)

/* A directory that others may open, and what is locked for a whole attach. No
 * attach takes that long. */
#define LOCK_DEADLINE_MS 5000U

/*
 * Locks the directory at `path` until *ret_fd is closed. -EAGAIN, without an
 * error text: there is none, or it went away meanwhile. -EBUSY: somebody else
 * held the lock for all of wait_ms; 0 is to try once.
 */
int lock_dir(struct natra *n, const char *path, unsigned int wait_ms,
	     int *ret_fd);

#endif
