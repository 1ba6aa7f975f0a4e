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

/* A list has each block once: IPv4 before IPv6, by address, shorter prefixes
 * first. */
struct subnets {
	enum natra_subnets kind;
	size_t len;
	struct natra_subnet *list; /* owned */
};

/* Reads what Go's net.ParseCIDR reads, but takes IPv4-mapped IPv6
 * (::ffff:0:0/96) for IPv4. Returns -EINVAL if the text is no CIDR block. */
int subnet_parse(const char *cidr, struct natra_subnet *ret_subnet);
void subnet_format(const struct natra_subnet *subnet,
		   char ret_text[SUBNET_TEXT_MAX]);

/* Returns whether subnet_parse could have produced this block: a pinned map may contain
 * anything. */
bool subnet_valid(const struct natra_subnet *subnet);

/* Reads the lists of a policy that has been checked. Returns -ENOMEM if there
 * is no memory. */
int subnets_read(const struct natra_policy *policy, struct subnets *ret);
void subnets_free(struct subnets *subnets);
#define cleanup_subnets __attribute__((cleanup(subnets_free)))

/* Sorts the list and removes duplicates. */
void subnets_sort(struct subnets *subnets);
bool subnets_equal(const struct subnets *a, const struct subnets *b);

#endif
