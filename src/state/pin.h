/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State on bpffs, the only one that natra has:
 *
 *   <bpffs>/natra/<key>/<generation>/{meta,subnets,<half>_link}
 *   <bpffs>/natra/engine_<abi>_<id>/..., see engine.h
 *   <bpffs>/natra/netns_<inode>/, empty, see pin_lock_netns
 *
 * The key is a hash of the id: bpffs refuses dots in names, and ids come from
 * outside. flock(2) on the key's directory excludes other processes. A new
 * generation is built beside the old one, and `complete` in its meta makes it
 * the one that counts; what is left of others is removed under the lock.
 */
#ifndef NATRA_STATE_PIN_H
#define NATRA_STATE_PIN_H

#include "policy/subnets.h"
#include "state/record.h"

#define PIN_PATH_MAX 512

/* A locked directory: of a key, or of an engine. */
struct pin_key {
	int lock_fd;
	bool is_new; /* made by this lock: nothing is in it */
	char path[PIN_PATH_MAX];
};

/* One generation. meta_fd is owned, -1 if there is no meta. */
struct pin_gen {
	char path[PIN_PATH_MAX];
	unsigned int number;
	int meta_fd;
	/* The ABI that the record names; 0 if it cannot be understood. meta is
	 * valid if it is NATRA_PIN_ABI; if it is older, meta has what
	 * meta_read() says. */
	uint32_t abi;
	struct meta meta;
};

#define PIN_KEY_INIT                                                           \
	{                                                                      \
		.lock_fd = -1                                                  \
	}
#define PIN_GEN_INIT                                                           \
	{                                                                      \
		.meta_fd = -1                                                  \
	}

/* Hand it on: the owner keeps nothing. */
#define TAKE_GEN(gen)                                                          \
	__extension__({                                                        \
		struct pin_gen take_ = (gen);                                  \
		(gen).meta_fd = -1;                                            \
		take_;                                                         \
	})

/* 1: a bpffs is mounted at the handle's path; 0: it is not. */
int pin_bpffs_mounted(struct natra *n);

/*
 * Locks the key of an id. create: mount bpffs and make the directories if they
 * are missing; else -ENOENT, without an error text, if there is nothing.
 */
int pin_lock(struct natra *n, const char *id, bool create,
	     struct pin_key *ret_key);
/* The same for a path that pin_foreach_key gave. */
int pin_lock_path(struct natra *n, const char *path, struct pin_key *ret_key);
void pin_unlock(struct pin_key *key);
#define cleanup_pin_key __attribute__((cleanup(pin_unlock)))

/*
 * Excludes other attachers to the interfaces of a network namespace (-1: the
 * caller's own), which must live until it is unlocked. The lock is on a
 * directory that root alone can open: the namespace itself could be locked for
 * ever by any process in it. Mounts bpffs as pin_lock does. Returns -EBUSY if
 * it stayed locked.
 */
int pin_lock_netns(struct natra *n, int netns_fd, struct pin_key *ret_key);
void pin_unlock_netns(struct pin_key *key);

/* Removes the directories of locks on namespaces that killed processes left. */
int pin_gc_netns(struct natra *n);

/* Writes the path of an id's directory, which need not exist, to ret_path,
 * which has PIN_PATH_MAX bytes. */
int pin_key_path(struct natra *n, const char *id, char *ret_path);

/* Removes the key's directory if it is empty; it must be locked. */
void pin_remove_key(const struct pin_key *key);

/* A new, empty generation with its meta, after `after`. */
int pin_new_gen(struct natra *n, const struct pin_key *key, unsigned int after,
		const struct meta *meta, struct pin_gen *ret_gen);

/* Calls cb for each generation under a key's path, lowest number first. */
int pin_foreach_gen(struct natra *n, const char *key_path,
		    int (*cb)(void *arg, struct pin_gen *gen), void *arg);

/* The newest complete generation of an id; -ENOENT without an error text;
 * -ESTALE another ABI, and ret_gen is set: to the abi alone if it is a newer
 * one. No lock is needed to read. */
int pin_find_gen(struct natra *n, const char *key_path,
		 struct pin_gen *ret_gen);
int pin_find(struct natra *n, const char *id, struct pin_gen *ret_gen);
void pin_close_gen(struct pin_gen *gen);
#define cleanup_pin_gen __attribute__((cleanup(pin_close_gen)))

int pin_store_meta(struct natra *n, struct pin_gen *gen);

int pin_link(struct natra *n, const struct pin_gen *gen, enum half half,
	     int link_fd);

/* -ENOENT without an error text if there is none. */
int pin_open_link(struct natra *n, const struct pin_gen *gen, enum half half,
		  int *ret_fd);

/* Pin a bank's map of subnets with the generation; read it back, -ENOENT without an error text if it is
 * not there. A generation without subnets has none. */
int pin_subnets(struct natra *n, const struct pin_gen *gen, int fd);
int pin_read_subnets(struct natra *n, const struct pin_gen *gen,
		     struct subnets *ret_subnets);

/* Unpins everything of a generation and removes its directory. */
int pin_remove_gen(struct natra *n, const struct pin_gen *gen);

/* Both call cb with the path of every key, or of every engine of whatever ABI,
 * as long as it returns 0. */
int pin_foreach_key(struct natra *n, int (*cb)(void *arg, const char *path),
		    void *arg);
int pin_foreach_engine(struct natra *n, int (*cb)(void *arg, const char *path),
		       void *arg);

/* Returns the ABI that is in the path of an engine; 0 if it is no such path. */
uint32_t pin_engine_abi(const char *path);

/* Locks the directory of an engine, as pin_lock does that of a key. */
int pin_lock_engine(struct natra *n, uint64_t id, bool create,
		    struct pin_key *ret_key);
void pin_bank_path(struct natra *n, uint64_t id, uint32_t bank, char *ret_path);

/* Objects of any directory on bpffs. -ENOENT as above. */
int pin_make_dir(struct natra *n, const char *path);
int pin_object(struct natra *n, const char *dir, const char *name, int fd);
int pin_open_object(struct natra *n, const char *dir, const char *name,
		    int *ret_fd);

/* Unpins all in a directory and removes it. */
int pin_remove_dir(struct natra *n, const char *dir);

#endif
