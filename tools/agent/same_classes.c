/* SPDX-License-Identifier: BSD-2-Clause */
#include "same_classes.h"

#include "../../src/policy/subnets.h"

static int same_class(const struct natra_class *a, const struct natra_class *b)
{
	const struct natra_policy left = {.classes = a, .classes_len = 1};
	const struct natra_policy right = {.classes = b, .classes_len = 1};
	cleanup_subnets struct subnets one = {0}, other = {0};
	int r = subnets_read(&left, &one);

	if (r == 0)
		r = subnets_read(&right, &other);
	return r < 0 ? r : subnets_equal(&one, &other);
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
