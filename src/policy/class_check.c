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

/* A block, and the class that has it. */
struct claim {
	struct natra_subnet subnet;
	const struct natra_class *class;
};

static int compare_claims(const void *a, const void *b)
{
	return subnet_compare(&((const struct claim *)a)->subnet,
			      &((const struct claim *)b)->subnet);
}

static int read_claims(const struct checking *c,
		       const struct natra_class *class, struct claim *claims,
		       size_t *len)
{
	for (size_t i = 0; class->subnets && i < class->subnets_len; i++) {
		const char *text = class->subnets[i];

		if (!text || subnet_parse(text, &claims[*len].subnet) < 0) {
			(void)snprintf(
				c->error, c->size,
				"classes: '%.100s' of '%s' is not a CIDR block",
				text ? text : "", class->name);
			str_one_line(c->error);
			return -EINVAL;
		}
		claims[(*len)++].class = class;
	}
	return 0;
}

/* Each block may be in one class only, or there is no longest prefix. */
static int check_claims(const struct checking *c, struct claim *claims,
			size_t len)
{
	char text[SUBNET_TEXT_MAX];

	qsort(claims, len, sizeof(*claims), compare_claims);
	for (size_t i = 1; i < len; i++) {
		const struct claim *one = &claims[i - 1], *two = &claims[i];

		if (one->class == two->class || compare_claims(one, two) != 0)
			continue;
		subnet_format(&one->subnet, text);
		(void)snprintf(c->error, c->size,
			       "classes: '%s' is in '%s' and in '%s'", text,
			       one->class->name, two->class->name);
		return -EINVAL;
	}
	return 0;
}

static int check_blocks(const struct checking *c)
{
	const struct natra_policy *p = c->policy;
	cleanup_free struct claim *claims = NULL;
	size_t all = 0, len = 0;
	int r = 0;

	for (size_t i = 0; i < p->classes_len; i++) {
		all += p->classes[i].subnets_len;
		if (p->classes[i].subnets_len > NATRA_SUBNETS_MAX ||
		    all > NATRA_SUBNETS_MAX) {
			(void)snprintf(c->error, c->size,
				       "classes: %zu subnets are more than %d",
				       all, NATRA_SUBNETS_MAX);
			return -EINVAL;
		}
	}
	claims = calloc(all + 1, sizeof(*claims));
	if (!claims) {
		(void)snprintf(c->error, c->size, "classes: no memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->classes_len && r == 0; i++)
		r = read_claims(c, &p->classes[i], claims, &len);
	return r < 0 ? r : check_claims(c, claims, len);
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
	if (p->classes_len &&
	    (p->shaped_subnets_len || p->unshaped_subnets_len)) {
		(void)snprintf(ret_error, size,
			       "classes: %zu beside %s_subnets", p->classes_len,
			       p->shaped_subnets_len ? "shaped" : "unshaped");
		return -EINVAL;
	}
	/* Each class has clocks of its own, so it would have a share of its own. */
	if (p->classes_len && p->group) {
		(void)snprintf(ret_error, size, "classes: %zu beside a group",
			       p->classes_len);
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
	}
	return r < 0 ? r : check_blocks(&c);
}
