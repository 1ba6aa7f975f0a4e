/* SPDX-License-Identifier: BSD-2-Clause */
#include "same_classes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an IPv4 address begins with as an IPv6 one (RFC 4291). */
static const uint8_t mapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* A block of IPv6, or of IPv4 behind `mapped`. */
struct block {
	uint8_t address[16];
	uint8_t bits;
};

/* Reads a block that the library has accepted, and clears what is behind the prefix. */
static struct block read_block(const char *cidr)
{
	struct block block = {0};
	const char *slash = strchr(cidr, '/');
	char text[INET6_ADDRSTRLEN] = "";
	unsigned long bits = slash ? strtoul(slash + 1, NULL, 10) : 0;

	(void)snprintf(text, sizeof(text), "%.*s",
		       slash ? (int)(slash - cidr) : 0, cidr);
	if (inet_pton(AF_INET, text, block.address + sizeof(mapped)) == 1) {
		memcpy(block.address, mapped, sizeof(mapped));
		bits += 8 * sizeof(mapped);
	} else {
		(void)inet_pton(AF_INET6, text, block.address);
	}
	block.bits = (uint8_t)bits;
	for (size_t bit = block.bits; bit < 8 * sizeof(block.address); bit++)
		block.address[bit / 8] &= (uint8_t) ~(0x80U >> bit % 8);
	return block;
}

static int compare_blocks(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct block));
}

/* Reads, sorts and removes duplicates. Returns the number of blocks, or -ENOMEM. */
static int read_blocks(const struct natra_class *class, struct block **ret)
{
	struct block *list = calloc(class->subnets_len + 1, sizeof(*list));
	int len = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < class->subnets_len; i++)
		list[i] = read_block(class->subnets[i]);
	qsort(list, class->subnets_len, sizeof(*list), compare_blocks);
	for (size_t i = 0; i < class->subnets_len; i++) {
		if (!i || compare_blocks(&list[len - 1], &list[i]) != 0)
			list[len++] = list[i];
	}
	*ret = list;
	return len;
}

static int same_blocks(const struct natra_class *a, const struct natra_class *b)
{
	struct block *left = NULL, *right = NULL;
	int len = read_blocks(a, &left), others = read_blocks(b, &right);
	int r = len < 0 || others < 0 ? -ENOMEM : len == others;

	if (r == 1)
		r = memcmp(left, right, (size_t)len * sizeof(*left)) == 0;
	free(left);
	free(right);
	return r;
}

static int same_class(const struct natra_class *a, const struct natra_class *b)
{
	if (strcmp(a->name, b->name) != 0 || a->dscps != b->dscps ||
	    a->ingress_rate_bits_per_sec != b->ingress_rate_bits_per_sec ||
	    a->egress_rate_bits_per_sec != b->egress_rate_bits_per_sec)
		return 0;
	return same_blocks(a, b);
}

struct comparison {
	const struct natra_policy *wanted;
	size_t len; /* so many are the same */
};

/* Ends the walk with 1 at a class that is another one. */
static int compare(void *arg, const struct natra_class *class)
{
	struct comparison *c = arg;
	int r = c->len < c->wanted->classes_len
			? same_class(class, &c->wanted->classes[c->len])
			: 0;

	c->len += r == 1;
	return r < 0 ? r : !r;
}

int same_classes(struct natra *n, const char *id,
		 const struct natra_policy *wanted)
{
	struct comparison c = {.wanted = wanted};
	int r = natra_foreach_class(n, id, compare, &c);

	return r < 0 ? r : r == 0 && c.len == wanted->classes_len;
}
