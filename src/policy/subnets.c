/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/subnets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/str.h"

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

static int read_list(const char *const *texts, size_t len,
		     struct natra_subnet **ret_list, size_t *ret_len)
{
	cleanup_free struct natra_subnet *list = NULL;

	if (!texts || !len)
		return 0;
	list = calloc(len, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++) {
		int r = subnet_parse(texts[i], &list[i]);

		if (r < 0)
			return r;
	}
	*ret_len = subnets_sort(list, len);
	*ret_list = TAKE_PTR(list);
	return 0;
}

static int read_class(const struct natra_class *given, struct peer_class *class)
{
	(void)str_copy(class->name, sizeof(class->name), given->name);
	class->ingress_rate_bits_per_sec = given->ingress_rate_bits_per_sec;
	class->egress_rate_bits_per_sec = given->egress_rate_bits_per_sec;
	class->dscps = given->dscps;
	return read_list(given->subnets, given->subnets_len, &class->list,
			 &class->len);
}

static int read_classes(const struct natra_policy *policy,
			struct subnets *subnets)
{
	int r = 0;

	if (!policy->classes || !policy->classes_len)
		return 0;
	subnets->classes =
		calloc(policy->classes_len, sizeof(*subnets->classes));
	if (!subnets->classes)
		return -ENOMEM;
	for (size_t i = 0; i < policy->classes_len && r == 0; i++) {
		r = read_class(&policy->classes[i], &subnets->classes[i]);
		subnets->classes_len++;
	}
	return r;
}

int subnets_read(const struct natra_policy *policy, struct subnets *ret)
{
	bool shaped = policy->shaped_subnets_len != 0;
	cleanup_subnets struct subnets subnets = {0};
	int r = read_classes(policy, &subnets);

	if (r == 0 && shaped)
		r = read_list(policy->shaped_subnets,
			      policy->shaped_subnets_len, &subnets.list,
			      &subnets.len);
	else if (r == 0)
		r = read_list(policy->unshaped_subnets,
			      policy->unshaped_subnets_len, &subnets.list,
			      &subnets.len);
	if (r < 0)
		return r;
	if (subnets.len)
		subnets.kind = shaped ? SUBNETS_SHAPED : SUBNETS_UNSHAPED;
	subnets.without_classes = policy->classes && !policy->classes_len;
	*ret = subnets;
	subnets = (struct subnets){0};
	return 0;
}

void subnets_free(struct subnets *subnets)
{
	for (size_t i = 0; i < subnets->classes_len; i++)
		free(subnets->classes[i].list);
	free(subnets->classes);
	free(subnets->list);
	*subnets = (struct subnets){0};
}

int subnet_compare(const void *a, const void *b)
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

size_t subnets_sort(struct natra_subnet *list, size_t len)
{
	size_t last = 0;

	if (!len)
		return 0;
	qsort(list, len, sizeof(*list), subnet_compare);
	for (size_t i = 1; i < len; i++) {
		if (subnet_compare(&list[i], &list[last]) != 0)
			list[++last] = list[i];
	}
	return last + 1;
}

static bool same_list(const struct natra_subnet *a, size_t a_len,
		      const struct natra_subnet *b, size_t b_len)
{
	return a_len == b_len &&
	       (!a_len || memcmp(a, b, a_len * sizeof(*a)) == 0);
}

static bool same_class(const struct peer_class *a, const struct peer_class *b)
{
	return a->ingress_rate_bits_per_sec == b->ingress_rate_bits_per_sec &&
	       a->egress_rate_bits_per_sec == b->egress_rate_bits_per_sec &&
	       a->dscps == b->dscps &&
	       same_list(a->list, a->len, b->list, b->len);
}

void subnets_set_lengths(const struct subnets *subnets,
			 struct natra_policy *policy)
{
	policy->shaped_subnets_len =
		subnets->kind == SUBNETS_SHAPED ? subnets->len : 0;
	policy->unshaped_subnets_len =
		subnets->kind == SUBNETS_UNSHAPED ? subnets->len : 0;
}

struct subnets subnets_merge(const struct subnets *given,
			     const struct subnets *have)
{
	struct subnets merged = *given;

	if (!given->kind) {
		merged.kind = have->kind;
		merged.list = have->list;
		merged.len = have->len;
	}
	if (!given->classes_len && !given->without_classes) {
		merged.classes = have->classes;
		merged.classes_len = have->classes_len;
	}
	return merged;
}

bool subnets_same_shape(const struct subnets *a, const struct subnets *b)
{
	for (size_t i = 0; i < a->classes_len && i < b->classes_len; i++) {
		if (strcmp(a->classes[i].name, b->classes[i].name) != 0)
			return false;
	}
	return a->kind == b->kind && a->classes_len == b->classes_len;
}

const char *subnets_other_class(const struct subnets *a,
				const struct subnets *b)
{
	for (size_t i = 0; i < a->classes_len || i < b->classes_len; i++) {
		if (i == b->classes_len)
			return a->classes[i].name;
		if (i == a->classes_len ||
		    strcmp(a->classes[i].name, b->classes[i].name) != 0 ||
		    !same_class(&a->classes[i], &b->classes[i]))
			return b->classes[i].name;
	}
	return NULL;
}

bool subnets_equal(const struct subnets *a, const struct subnets *b)
{
	return a->kind == b->kind && !subnets_other_class(a, b) &&
	       same_list(a->list, a->len, b->list, b->len);
}
