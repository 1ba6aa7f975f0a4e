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

/* These are the rules for which the address of a peer is looked up. Either the list of
 * subnets or that of classes is empty. */
struct subnets {
	enum natra_subnets kind;
	size_t len;
	struct natra_subnet *list; /* owned */
	size_t classes_len;
	struct peer_class *classes; /* owned; in the order of their numbers */
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
void subnets_free(struct subnets *subnets);
#define cleanup_subnets __attribute__((cleanup(subnets_free)))

/* Compares blocks by the order of a list, as qsort() wants it. */
int subnet_compare(const void *a, const void *b);
/* Sorts a list and removes duplicates. Returns its new length. */
size_t subnets_sort(struct natra_subnet *list, size_t len);
bool subnets_equal(const struct subnets *a, const struct subnets *b);

/* Returns whether an attachment can change from one to the other while it is attached:
 * they are equal, or have classes of the same names. */
bool subnets_same_shape(const struct subnets *a, const struct subnets *b);

#endif
