/* SPDX-License-Identifier: BSD-2-Clause */
/* One bank of an engine and its pins. Whoever changes a bank has locked its
 * engine. */
#ifndef NATRA_STATE_BANK_H
#define NATRA_STATE_BANK_H

#include "state/bank_load.h"

/* A bank writes this into the slots that an attachment takes. */
struct slot_content {
	const struct natra_limits *limits; /* of each slot */
	/* Of the hashes of flows, NATRA_HASH_KEYS numbers. All slots of an attachment have
	 * the same, so that flows which share cells where ingress is judged are the same
	 * as those in the backstop: what is small there is not taken for heavy here. */
	const uint64_t *keys;
	uint64_t replaces; /* see natra_config */
	int table_fd;      /* of connections, where they are measured */
	int trie_fd;       /* of its classes, if it has any */
};

/* Opens a bank. Returns -ENOENT without an error text if there is none, or not
 * all of it, and -ESTALE if the maps that are pinned there are not of this
 * layout. *b may have open descriptors after an error, too. */
int bank_open(struct natra *n, const char *path, struct bank *b);

/* Opens only the limits and the states of a bank in the same way, for a reader of
 * many. */
int bank_open_slots(struct natra *n, const char *path, struct bank *b);

/* Loads a new bank and pins it. */
int bank_make(struct natra *n, const struct program_options *options,
	      const char *path, uint32_t slots, struct bank *b);

/* Sets *ret_current to whether the bank's program is this build's. */
int bank_is_current(struct natra *n, const struct bank *b, bool *ret_current);

/* Replaces the bank's program by this build's, unless it already is. */
int bank_renew(struct natra *n, const struct program_options *options,
	       const struct bank *b);

/* Finds so many free slots side by side. Returns -ENOENT without an error text if there
 * are none. */
int bank_find_slots(struct natra *n, const struct bank *b, uint32_t count,
		    uint32_t *ret_index);

/* Gives these slots to an attachment. The first one is its own, and the others are those
 * of its classes. By that one it is found that they are taken, so it is taken first and
 * left last. The state of each begins at zero. */
int bank_take_slots(struct natra *n, const struct bank *b, uint32_t index,
		    uint32_t count, uint64_t owner,
		    const struct slot_content *content);
/* Makes random keys for an attachment. */
int bank_make_keys(struct natra *n, uint64_t ret_keys[NATRA_HASH_KEYS]);

int bank_free_slots(struct natra *n, const struct bank *b, uint32_t index,
		    uint64_t owner);

/* Puts the table of an attachment's connections into its slot, which keeps it. */
int bank_put_table(struct natra *n, const struct bank *b, uint32_t index,
		   int table_fd);

/* Does the same with the trie of its classes. */
int bank_put_trie(struct natra *n, const struct bank *b, uint32_t index,
		  int trie_fd);
/* Gets the kernel's id of that trie. Returns -ENOENT without an error text if there is
 * none. */
int bank_trie_id(struct natra *n, const struct bank *b, uint32_t index,
		 uint32_t *ret_id);

/* Reads the entry of a slot. Returns -ENOENT without an error text if the bank
 * has no slot of this number. */
int bank_read_config(struct natra *n, const struct bank *b, uint32_t index,
		     struct natra_config *ret_config);
int bank_free_slot(struct natra *n, const struct bank *b, uint32_t index);

int bank_remove(struct natra *n, const char *path, const struct bank *b);
/* Removes a bank of another ABI: in every ABI, the arrays of its programs are pinned as
 * `programs` and `next`. */
int bank_remove_foreign(struct natra *n, const char *path);

#endif
