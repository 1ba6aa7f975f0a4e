/* SPDX-License-Identifier: BSD-2-Clause */
/* CIDR blocks: from text to the keys of the map, and back. Nothing here asks
 * the kernel. */
#ifndef NATRA_POLICY_SUBNETS_H
#define NATRA_POLICY_SUBNETS_H

#include <stdbool.h>
#include <stddef.h>

#include <natra/natra.h>

#include "../../bpf/natra_shared.h"

/* "ffff:...:ffff/128" */
#define SUBNET_TEXT_MAX 64

/* A list of blocks has each once: IPv4 before IPv6, by address, shorter prefixes
 * first. */

/* One class, see struct natra_class. */
struct peer_class {
	char name[NATRA_CLASS_NAME_MAX + 1];
	uint64_t ingress_rate_bits_per_sec;
	uint64_t egress_rate_bits_per_sec;
	uint64_t dscps;
	size_t len;
	struct natra_subnet *list; /* owned */
};

/* What the list of subnets says of its peers. These values are pinned. */
enum subnets_kind {
	SUBNETS_NONE,     /* there is no list */
	SUBNETS_SHAPED,   /* all others are exempt */
	SUBNETS_UNSHAPED, /* they are exempt */
};

/* The rules by which a peer is exempt or has limits of its own. */
struct subnets {
	enum subnets_kind kind;
	size_t len;
	struct natra_subnet *list; /* owned */
	size_t classes_len;
	struct peer_class *classes; /* owned; in the order of their numbers */
	bool without_classes;       /* those that there are are to go */
};

/* Reads what Go's net.ParseCIDR reads, but takes IPv4-mapped IPv6
 * (::ffff:0:0/96) for IPv4. Returns -EINVAL if the text is no CIDR block. */
int subnet_parse(const char *cidr, struct natra_subnet *ret_subnet);
void subnet_format(const struct natra_subnet *subnet,
		   char ret_text[SUBNET_TEXT_MAX]);

/* Returns whether subnet_parse could have produced this block: a pinned map may contain
 * anything. */
bool subnet_valid(const struct natra_subnet *subnet);

/* Reads the lists of a policy that has been checked, also those of classes. Returns
 * -ENOMEM if there is no memory. */
int subnets_read(const struct natra_policy *policy, struct subnets *ret);

/* Gives a policy the length of the list of subnets, which may have lost duplicates. */
void subnets_set_lengths(const struct subnets *subnets,
			 struct natra_policy *policy);

/* Returns the rules that were given, and those that there are in place of a list that was
 * not. The lists stay their owners'. */
struct subnets subnets_merge(const struct subnets *given,
			     const struct subnets *have);
void subnets_free(struct subnets *subnets);
#define cleanup_subnets __attribute__((cleanup(subnets_free)))

/* Compares blocks by the order of a list, as qsort() wants it. */
int subnet_compare(const void *a, const void *b);
/* Sorts a list and removes duplicates. Returns its new length. */
size_t subnets_sort(struct natra_subnet *list, size_t len);

/* Returns the name of the first class in which they differ, or NULL. */
const char *subnets_other_class(const struct subnets *a,
				const struct subnets *b);
bool subnets_equal(const struct subnets *a, const struct subnets *b);

/* Returns whether peers are told apart. */
static inline bool subnets_any(const struct subnets *subnets)
{
	return subnets->kind || subnets->classes_len;
}

/* Returns whether an attachment can change from one to the other while it is attached:
 * they have the same kind of list, and classes of the same names. */
bool subnets_same_shape(const struct subnets *a, const struct subnets *b);

#endif
