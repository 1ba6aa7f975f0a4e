/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The directories on bpffs, which are the only state that natra has:
 *
 *   <bpffs>/natra/<hash of the id>/<generation>/..., see pin.h
 *   <bpffs>/natra/netns_<inode>/, empty, see pin_dir_lock_netns
 *   <bpffs>/natra/abi<number>/
 *           engine_<id>/<bank>/..., see engine.h
 *           events/ring, see ring.h
 *           groups/map, see group_map.h
 *
 * Builds of all ABIs share ids and the locks on namespaces, and each ABI has a directory
 * of its own for what only it understands. In every ABI a process pins the record of an
 * attachment first, then locks an engine, and takes a slot under that lock.
 *
 * The directory of an id is named by a hash: bpffs refuses dots in names, and
 * ids come from outside. Whoever changes what is in one of these directories
 * holds flock(2) on it. A process that has lifted the limits of a generation for some
 * time holds a shared lock on the directory of that generation: if it is killed, others
 * see that it does not give them back any more.
 */
#ifndef NATRA_STATE_PIN_DIR_H
#define NATRA_STATE_PIN_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/handle.h"

#define PIN_PATH_MAX 512

/* A directory that this process has locked; lock_fd is -1 if none is. */
struct pin_dir {
	int lock_fd;
	bool is_new; /* it was made to be locked: nothing is in it */
	char path[PIN_PATH_MAX];
};

#define PIN_DIR_INIT                                                           \
	{                                                                      \
		.lock_fd = -1                                                  \
	}

/* Each cb is called as long as it returns 0, and what it returned last is
 * returned. */
typedef int (*pin_dir_fn)(void *arg, const char *path);

/* Returns r, what a lock returned, and names to its error text what is locked, if that was waited
 * for: the path of the lock says it to nobody. */
int pin_dir_name_lock(struct natra *n, int r, const char *name);

/*
 * Locks the directory of an id. With `create`, mounts bpffs and makes the
 * directories if they are missing; otherwise returns -ENOENT, without an error
 * text, if there is none.
 */
int pin_dir_lock_id(struct natra *n, const char *id, bool create,
		    struct pin_dir *ret_dir);

/* Locks the directory of an engine in the same way; bpffs must be mounted. */
int pin_dir_lock_engine(struct natra *n, uint64_t id, bool create,
			struct pin_dir *ret_dir);

/* Writes the path of the directory of events to ret_path, which has PIN_PATH_MAX
 * bytes. */
int pin_dir_events_path(struct natra *n, char *ret_path);

/* Calls cb with that path for each ABI; it need not exist. */
int pin_dir_foreach_events(struct natra *n, pin_dir_fn cb, void *arg);

/* Locks that directory, and makes it if it is missing. */
int pin_dir_lock_events(struct natra *n, struct pin_dir *ret_dir);

/* Do the same for the directory of groups. Only with `create` is it made, and bpffs mounted as
 * pin_dir_lock_id does. */
int pin_dir_groups_path(struct natra *n, char *ret_path);
int pin_dir_lock_groups(struct natra *n, bool create, struct pin_dir *ret_dir);

/* Locks a directory at a path that was given to a pin_dir_fn. */
int pin_dir_lock(struct natra *n, const char *path, struct pin_dir *ret_dir);

/* Does the same without waiting: returns -EBUSY if another process has locked it. */
int pin_dir_try_lock(struct natra *n, const char *path,
		     struct pin_dir *ret_dir);

/* Locks it together with others who share it; returns -EBUSY, too. */
int pin_dir_share(struct natra *n, const char *path, struct pin_dir *ret_dir);

void pin_dir_unlock(struct pin_dir *dir);
#define cleanup_pin_dir __attribute__((cleanup(pin_dir_unlock)))

/*
 * Excludes other attachers from the interfaces of a network namespace (-1: the
 * caller's own), which must live until it is unlocked. The lock is on a
 * directory that root alone can open: the namespace itself could be locked for
 * ever by any process in it. Mounts bpffs as pin_dir_lock_id does. Returns
 * -EBUSY if another process held the lock all the time.
 */
int pin_dir_lock_netns(struct natra *n, int netns_fd, struct pin_dir *ret_dir);
void pin_dir_unlock_netns(struct pin_dir *dir);

/* Removes the directories of locks on namespaces that killed processes left. */
int pin_dir_gc_netns(struct natra *n);

/* Removes a locked directory if it is empty. */
void pin_dir_remove(const struct pin_dir *dir);

/* Makes a directory unless it is there. */
int pin_dir_make(struct natra *n, const char *path);

/* Writes the path of an id's directory, which need not exist, to ret_path,
 * which has PIN_PATH_MAX bytes. */
int pin_dir_path(struct natra *n, const char *id, char *ret_path);

/* Writes the path of a bank of an engine in the same way. */
void pin_dir_bank_path(struct natra *n, uint64_t id, uint32_t bank,
		       char *ret_path);

/* Returns the ABI that is in a path which was given to a pin_dir_fn for an engine. */
uint32_t pin_dir_engine_abi(const char *path);

/* Returns 1 if there is an engine beside this directory, whose programs may use what is
 * pinned in it, and 0 if there is none. */
int pin_dir_find_engine(struct natra *n, const char *path);

/* Calls cb with the path of each id's directory, or of each engine's of
 * whatever ABI. */
int pin_dir_foreach_id(struct natra *n, pin_dir_fn cb, void *arg);
int pin_dir_foreach_engine(struct natra *n, pin_dir_fn cb, void *arg);

#endif
