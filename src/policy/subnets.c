/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/subnets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

#define MAPPED_BITS 96 /* of ::ffff:0:0/96, IPv4 in IPv6 */

static const unsigned char mapped[MAPPED_BITS / 8] = {0, 0, 0, 0, 0,    0,
						      0, 0, 0, 0, 0xff, 0xff};

/* Reads a decimal number up to `max` with nothing behind it. Returns -EINVAL if
 * it is anything else. */
static int parse_bits(const char *text, unsigned int max)
{
	unsigned int bits = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		bits = bits * 10 + (unsigned int)(*text - '0');
		if (bits > max)
			return -EINVAL;
	}
	return (int)bits;
}

static void clear_host_bits(unsigned char *addr, size_t size, unsigned int bits)
{
	for (size_t i = 0; i < size; i++) {
		unsigned int keep = bits > 8 ? 8 : bits;

		addr[i] &= (unsigned char)(0xff00U >> keep);
		bits -= keep;
	}
}

int subnet_parse(const char *cidr, struct natra_subnet *ret_subnet)
{
	struct natra_subnet subnet = {.version = 4};
	unsigned char addr[16] = {0};
	char text[INET6_ADDRSTRLEN];
	const char *slash = strchr(cidr, '/');
	size_t size = 4;
	int bits;

	if (!slash || (size_t)(slash - cidr) >= sizeof(text))
		return -EINVAL;
	memcpy(text, cidr, (size_t)(slash - cidr));
	text[slash - cidr] = '\0';
	if (inet_pton(AF_INET, text, addr) != 1) {
		if (inet_pton(AF_INET6, text, addr) != 1)
			return -EINVAL;
		subnet.version = 6;
		size = 16;
	}
	bits = parse_bits(slash + 1, (unsigned int)size * 8);
	if (bits < 0)
		return bits;
	if (subnet.version == 6 && bits >= MAPPED_BITS &&
	    memcmp(addr, mapped, sizeof(mapped)) == 0) {
		memmove(addr, addr + sizeof(mapped), 4);
		subnet.version = 4;
		size = 4;
		bits -= MAPPED_BITS;
	}
	clear_host_bits(addr, size, (unsigned int)bits);
	memcpy(subnet.addr, addr, size);
	subnet.prefix_bits = NATRA_SUBNET_VERSION_BITS + (unsigned int)bits;
	*ret_subnet = subnet;
	return 0;
}

bool subnet_valid(const struct natra_subnet *subnet)
{
	size_t size = subnet->version == 4 ? 4 : 16;
	struct natra_subnet masked = *subnet;

	if ((subnet->version != 4 && subnet->version != 6) ||
	    subnet->prefix_bits < NATRA_SUBNET_VERSION_BITS ||
	    subnet->prefix_bits > NATRA_SUBNET_VERSION_BITS + size * 8)
		return false;
	clear_host_bits((unsigned char *)masked.addr, sizeof(masked.addr),
			subnet->prefix_bits - NATRA_SUBNET_VERSION_BITS);
	return memcmp(&masked, subnet, sizeof(masked)) == 0;
}

void subnet_format(const struct natra_subnet *subnet,
		   char ret_text[SUBNET_TEXT_MAX])
{
	char addr[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(subnet->version == 4 ? AF_INET : AF_INET6, subnet->addr,
			addr, sizeof(addr));
	(void)snprintf(ret_text, SUBNET_TEXT_MAX, "%s/%u", addr,
		       subnet->prefix_bits - NATRA_SUBNET_VERSION_BITS);
}

int subnets_read(const struct natra_policy *policy, struct subnets *ret)
{
	bool shaped = policy->shaped_subnets_len != 0;
	const char *const *texts =
		shaped ? policy->shaped_subnets : policy->unshaped_subnets;
	size_t len = shaped ? policy->shaped_subnets_len
			    : policy->unshaped_subnets_len;
	cleanup_subnets struct subnets subnets = {
		.kind = shaped ? NATRA_SUBNETS_SHAPED : NATRA_SUBNETS_UNSHAPED,
	};

	if (!texts || !len) {
		*ret = (struct subnets){0};
		return 0;
	}
	subnets.list = calloc(len, sizeof(*subnets.list));
	if (!subnets.list)
		return -ENOMEM;
	for (; subnets.len < len; subnets.len++) {
		int r = subnet_parse(texts[subnets.len],
				     &subnets.list[subnets.len]);

		if (r < 0)
			/* cppcheck-suppress memleak ; knows no cleanup_ */
			return r;
	}
	subnets_sort(&subnets);
	*ret = subnets;
	subnets = (struct subnets){0};
	return 0;
}

void subnets_free(struct subnets *subnets)
{
	free(subnets->list);
	*subnets = (struct subnets){0};
}

static int compare(const void *a, const void *b)
{
	const struct natra_subnet *x = a, *y = b;
	int r = (x->version > y->version) - (x->version < y->version);

	if (r == 0)
		r = memcmp(x->addr, y->addr, sizeof(x->addr));
	if (r == 0)
		r = (x->prefix_bits > y->prefix_bits) -
		    (x->prefix_bits < y->prefix_bits);
	return r;
}

void subnets_sort(struct subnets *subnets)
{
	size_t len = 0;

	if (!subnets->len)
		return;
	qsort(subnets->list, subnets->len, sizeof(*subnets->list), compare);
	for (size_t i = 1; i < subnets->len; i++) {
		if (compare(&subnets->list[i], &subnets->list[len]) != 0)
			subnets->list[++len] = subnets->list[i];
	}
	subnets->len = len + 1;
}

bool subnets_equal(const struct subnets *a, const struct subnets *b)
{
	return a->kind == b->kind && a->len == b->len &&
	       (!a->len ||
		memcmp(a->list, b->list, a->len * sizeof(*a->list)) == 0);
}
