/* SPDX-License-Identifier: BSD-2-Clause */
/* flock(2) on a directory, which the holder of the lock may remove. */
#ifndef NATRA_STATE_LOCK_H
#define NATRA_STATE_LOCK_H

#include "base/handle.h"

/* A wait_ms for natra's own directories, which root alone can open: lock_dir
 * waits as long as it takes. Their holders end soon, or die, and then the
 * kernel unlocks. */
#define LOCK_NO_DEADLINE (~0U)

/* The same for the locks that a call takes before it changes anything: the handle's
 * cancelled_fn can end the wait. */
#define LOCK_UNTIL_CANCELLED (~0U - 1)

/* The wait_ms for a directory that others may open, and for what is locked for
 * a whole attach. No attach takes that long. cancelled_fn can end this wait, too. */
#define LOCK_DEADLINE_MS 5000U

/*
 * Locks the directory at `path` until *ret_fd is closed. Returns -EAGAIN,
 * without an error text, if there is no such directory or it went away
 * meanwhile, -EBUSY if another process held the lock for all of wait_ms, and
 * -ECANCELED; with 0 it tries once.
 */
int lock_dir(struct natra *n, const char *path, unsigned int wait_ms,
	     int *ret_fd);

/* Locks the directory together with others who share it, or returns -EBUSY. It must not
 * be removed meanwhile. */
int lock_dir_shared(struct natra *n, const char *path, int *ret_fd);

#endif
