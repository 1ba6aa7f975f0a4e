/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/class_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/str.h"

/* The text of an error, and the policy that it is about. */
struct checking {
	const struct natra_policy *policy;
	char *error;
	size_t size;
};

static int check_name(const struct checking *c, size_t number)
{
	const struct natra_class *list = c->policy->classes;
	const char *name = list[number].name ? list[number].name : "";
	const size_t len = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"abcdefghijklmnopqrstuvwxyz"
					"0123456789._-");

	if (!len || name[len] || len > NATRA_CLASS_NAME_MAX) {
		(void)snprintf(
			c->error, c->size,
			"classes: '%.64s' is not a name of 1 to %d letters, digits, '.', '_' and '-'",
			name, NATRA_CLASS_NAME_MAX);
		str_one_line(c->error);
		return -EINVAL;
	}
	for (size_t i = 0; i < number; i++) {
		if (strcmp(list[i].name, name) == 0) {
			(void)snprintf(c->error, c->size,
				       "classes: '%s' is there twice", name);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_rates(const struct checking *c,
		       const struct natra_class *class)
{
	const uint64_t in = class->ingress_rate_bits_per_sec;
	const uint64_t out = class->egress_rate_bits_per_sec;
	const bool is_in = in > NATRA_RATE_MAX_BITS_PER_SEC;

	if (!is_in && out <= NATRA_RATE_MAX_BITS_PER_SEC)
		return 0;
	(void)snprintf(
		c->error, c->size,
		"classes: %s_rate_bits_per_sec of '%s': %" PRIu64 " is over 1P",
		is_in ? "ingress" : "egress", class->name, is_in ? in : out);
	return -EINVAL;
}

static int check_dscps(const struct checking *c, size_t number)
{
	const struct natra_class *list = c->policy->classes;

	for (size_t i = 0; i < number; i++) {
		const uint64_t both = list[i].dscps & list[number].dscps;

		if (both) {
			(void)snprintf(
				c->error, c->size,
				"classes: DSCP %d is in '%s' and in '%s'",
				__builtin_ctzll(both), list[i].name,
				list[number].name);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_blocks(const struct checking *c,
			const struct natra_class *class)
{
	struct natra_subnet subnet;

	if (class->subnets_len > NATRA_SUBNETS_MAX) {
		(void)snprintf(c->error, c->size,
			       "classes: %zu subnets are more than %d",
			       class->subnets_len, NATRA_SUBNETS_MAX);
		return -EINVAL;
	}
	if (class->subnets_len && !class->subnets) {
		(void)snprintf(c->error, c->size,
			       "classes: '%s' has %zu subnets, and no list",
			       class->name, class->subnets_len);
		return -EINVAL;
	}
	for (size_t i = 0; i < class->subnets_len; i++) {
		const char *text = class->subnets[i];

		if (text && subnet_parse(text, &subnet) == 0)
			continue;
		(void)snprintf(c->error, c->size,
			       "classes: '%.100s' of '%s' is not a CIDR block",
			       text ? text : "", class->name);
		str_one_line(c->error);
		return -EINVAL;
	}
	return 0;
}

int classes_check(const struct natra_policy *p, char *ret_error, size_t size)
{
	const struct checking c = {p, ret_error, size};
	int r = 0;

	if (p->classes_len > NATRA_CLASSES_MAX) {
		(void)snprintf(ret_error, size, "classes: %zu are more than %d",
			       p->classes_len, NATRA_CLASSES_MAX);
		return -EINVAL;
	}
	if (!p->classes)
		return 0;
	for (size_t i = 0; i < p->classes_len && r == 0; i++) {
		r = check_name(&c, i);
		if (r == 0)
			r = check_rates(&c, &p->classes[i]);
		if (r == 0)
			r = check_dscps(&c, i);
		if (r == 0)
			r = check_blocks(&c, &p->classes[i]);
	}
	return r;
}

/* A block, and the name of the list that has it. */
struct claim {
	struct natra_subnet subnet;
	const char *name;
};

struct claims {
	struct claim *list; /* owned */
	size_t len;
};

static void claims_free(struct claims *claims)
{
	free(claims->list);
}

static int compare_claims(const void *a, const void *b)
{
	return subnet_compare(&((const struct claim *)a)->subnet,
			      &((const struct claim *)b)->subnet);
}

static void add_claims(struct claims *claims, const struct natra_subnet *list,
		       size_t len, const char *name)
{
	for (size_t i = 0; i < len; i++)
		claims->list[claims->len++] = (struct claim){list[i], name};
}

/* There is no longest prefix if two lists have the same block. */
static int check_claims(struct claims *claims, char *ret_error, size_t size)
{
	char text[SUBNET_TEXT_MAX];

	qsort(claims->list, claims->len, sizeof(*claims->list), compare_claims);
	for (size_t i = 1; i < claims->len; i++) {
		const struct claim *one = &claims->list[i - 1], *two = one + 1;

		if (compare_claims(one, two) != 0)
			continue;
		subnet_format(&one->subnet, text);
		(void)snprintf(ret_error, size,
			       "classes: '%s' is in '%s' and in '%s'", text,
			       one->name, two->name);
		return -EINVAL;
	}
	return 0;
}

int subnets_check(const struct subnets *subnets, char *ret_error, size_t size)
{
	__attribute__((cleanup(claims_free))) struct claims claims = {0};
	size_t all = subnets->len;

	for (size_t i = 0; i < subnets->classes_len; i++)
		all += subnets->classes[i].len;
	if (all > NATRA_SUBNETS_MAX) {
		(void)snprintf(ret_error, size,
			       "classes: %zu subnets are more than %d", all,
			       NATRA_SUBNETS_MAX);
		return -EINVAL;
	}
	if (all == 0)
		return 0;
	claims.list = calloc(all, sizeof(*claims.list));
	if (!claims.list) {
		(void)snprintf(ret_error, size, "classes: no memory");
		return -ENOMEM;
	}
	add_claims(&claims, subnets->list, subnets->len,
		   subnets->kind == SUBNETS_SHAPED ? "shaped_subnets"
						   : "unshaped_subnets");
	for (size_t i = 0; i < subnets->classes_len; i++)
		add_claims(&claims, subnets->classes[i].list,
			   subnets->classes[i].len, subnets->classes[i].name);
	return check_claims(&claims, ret_error, size);
}
