/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pins of an attachment, in the directory of its id:
 *
 *   <generation>/{meta,subnets,classes,<leg>_link}
 *
 * In every ABI, what counts is the complete generation with the highest number, whose
 * record is `meta`, and all pins whose names end in `_link` are links.
 *
 * `meta` is the record, see record.h. A new generation is built beside the old
 * one, and `complete` in its record makes it the one that counts; what is left
 * of others is removed under the lock of the id. This file also has what any
 * directory on bpffs needs: pinning an object, opening it, removing all.
 */
#ifndef NATRA_STATE_PIN_H
#define NATRA_STATE_PIN_H

#include "policy/subnets.h"
#include "state/pin_dir.h"
#include "state/record.h"

/* The name of the record in the directory of a generation. */
#define PIN_RECORD_NAME "meta"

/* One generation. record_fd is owned, -1 if there is no record. */
struct pin_gen {
	char path[PIN_PATH_MAX];
	unsigned int number;
	int record_fd;
	enum record_kind kind; /* what `record` has, see record_read() */
	struct record record;
};

#define PIN_GEN_INIT                                                           \
	{                                                                      \
		.record_fd = -1                                                \
	}

/* Evaluates to a generation, and clears the variable that owned it. */
#define TAKE_GEN(gen)                                                          \
	__extension__({                                                        \
		struct pin_gen take_ = (gen);                                  \
		(gen).record_fd = -1;                                          \
		take_;                                                         \
	})

void pin_close_gen(struct pin_gen *gen);
#define cleanup_pin_gen __attribute__((cleanup(pin_close_gen)))

/* Calls cb for each generation in the directory of an id, the lowest number
 * first, as long as it returns 0. Returns what cb returned last. */
int pin_foreach_gen(struct natra *n, const char *id_path,
		    int (*cb)(void *arg, struct pin_gen *gen), void *arg);

/*
 * Both find the newest complete generation of an id, and need no lock. They
 * return -ENOENT, without an error text, if there is none, and -ESTALE if it is
 * foreign: *ret_gen is set then as well.
 */
int pin_find_gen(struct natra *n, const char *id_path, struct pin_gen *ret_gen);
int pin_find(struct natra *n, const char *id, struct pin_gen *ret_gen);

/* Pins the TCX link of a leg. */
int pin_link(struct natra *n, const struct pin_gen *gen, enum leg leg,
	     int link_fd);

/* Opens that link. Returns -ENOENT without an error text if there is none. */
int pin_open_link(struct natra *n, const struct pin_gen *gen, enum leg leg,
		  int *ret_fd);

/* Detaches all links of a generation, whatever their legs are called. */
int pin_detach_links(struct natra *n, const struct pin_gen *gen);

/* Pins the map of a generation's subnets and of those of its classes. */
int pin_subnets(struct natra *n, const struct pin_gen *gen, int fd);

/* Reads the subnets of a generation, or its classes, of which a generation without subnets has
 * none. Returns -ENOENT without an error text if the map is not pinned. */
int pin_read_subnets(struct natra *n, const struct pin_gen *gen,
		     struct subnets *ret_subnets);

/* Opens that map. Returns -ENOENT without an error text if it is not pinned. */
int pin_open_subnets(struct natra *n, const struct pin_gen *gen, int *ret_fd);

/* Pins the classes of a generation. */
int pin_classes(struct natra *n, const struct pin_gen *gen,
		const struct record_classes *classes);

/* Both return -ENOENT without an error text if they are not pinned. */
int pin_read_classes(struct natra *n, const struct pin_gen *gen,
		     struct record_classes *ret_classes);
int pin_write_classes(struct natra *n, const struct pin_gen *gen,
		      const struct record_classes *classes);

/* Unpins everything of a generation and removes its directory. */
int pin_remove_gen(struct natra *n, const struct pin_gen *gen);

/* Pins an object in a directory. */
int pin_object(struct natra *n, const char *dir, const char *name, int fd);

/* Opens an object. Returns -ENOENT without an error text if there is none. */
int pin_open_object(struct natra *n, const char *dir, const char *name,
		    int *ret_fd);

/* A map as natra makes it, with keys of 4 bytes. */
struct pin_map {
	uint32_t type; /* of enum bpf_map_type */
	uint32_t value_size;
	uint32_t entries; /* 0: any number */
	uint32_t flags;   /* that it has among others */
};

/*
 * Checks that an object which was opened in a directory is such a map, since
 * somebody may have pinned anything there. Returns -ESTALE if it is another.
 * *ret_entries gets the number of entries, unless it is NULL.
 */
int pin_check_map(struct natra *n, const char *dir, const char *name, int fd,
		  const struct pin_map *wanted, uint32_t *ret_entries);

/* Unpins all that is in a directory and removes it. */
int pin_remove_all(struct natra *n, const char *dir);

#endif
