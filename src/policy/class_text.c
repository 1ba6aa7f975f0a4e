/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/class_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/fields.h"
#include "util/cleanup.h"

/* What a message shows of an item of a list. */
#define ITEM_SHOWN_MAX 48

/* A class that is being read. */
struct made {
	struct natra_class *class;
	const char **subnets; /* those of the class, which has room for all */
	bool has_subnets;     /* the text names some, or "none" */
	bool has_dscps;
};

/* Reads a decimal number up to POLICY_DSCP_MAX. Returns -EINVAL if there is none. */
static int read_dscp(const char **text, unsigned int *ret_dscp)
{
	unsigned int dscp = 0;
	const char *at = *text;

	for (; *at >= '0' && *at <= '9' && dscp <= POLICY_DSCP_MAX; at++)
		dscp = dscp * 10 + (unsigned int)(*at - '0');
	if (at == *text)
		return -EINVAL;
	if (dscp > POLICY_DSCP_MAX)
		return -ERANGE;
	*text = at;
	*ret_dscp = dscp;
	return 0;
}

/* Reads "46" or "8-15" or "none". */
static int read_dscps(const char *text, struct made *m)
{
	unsigned int from, to;
	int r;

	if (!m->has_dscps)
		m->class->dscps = 0;
	m->has_dscps = true;
	if (strcmp(text, "none") == 0)
		return 0;
	r = read_dscp(&text, &from);
	to = from;
	if (r == 0 && *text == '-') {
		text++;
		r = read_dscp(&text, &to);
	}
	if (r < 0)
		return r;
	if (*text || to < from)
		return -EINVAL;
	for (; from <= to; from++)
		m->class->dscps |= UINT64_C(1) << from;
	return 0;
}

static int read_rate(const char *text, uint64_t *ret_rate)
{
	if (strcmp(text, "unlimited") != 0 && strcmp(text, "0") != 0)
		return natra_parse_rate(text, ret_rate);
	*ret_rate = 0;
	return 0;
}

static int read_subnet(const char *text, struct made *m)
{
	if (!*text)
		return -EINVAL;
	if (!m->has_subnets)
		m->class->subnets_len = 0;
	m->has_subnets = true;
	if (strcmp(text, "none") != 0)
		m->subnets[m->class->subnets_len++] = text;
	return 0;
}

static int read_item(const char *item, struct made *m)
{
	static const char in[] = "ingress-rate=", out[] = "egress-rate=",
			  dscp[] = "dscp=";

	if (strncmp(item, in, sizeof(in) - 1) == 0)
		return read_rate(item + sizeof(in) - 1,
				 &m->class->ingress_rate_bits_per_sec);
	if (strncmp(item, out, sizeof(out) - 1) == 0)
		return read_rate(item + sizeof(out) - 1,
				 &m->class->egress_rate_bits_per_sec);
	if (strncmp(item, dscp, sizeof(dscp) - 1) == 0)
		return read_dscps(item + sizeof(dscp) - 1, m);
	return read_subnet(item, m);
}

/* Returns the room that a text and the subnets of a class need. */
static size_t room_for(const char *text, const struct natra_class *base,
		       size_t *ret_subnets)
{
	size_t bytes = strlen(text) + 1, subnets = 1;

	for (const char *at = text; *at; at++)
		subnets += *at == ',';
	for (size_t i = 0; base && i < base->subnets_len; i++)
		bytes += strlen(base->subnets[i]) + 1;
	if (base && base->subnets_len > subnets)
		subnets = base->subnets_len;
	*ret_subnets = subnets;
	return sizeof(struct natra_class) + subnets * sizeof(char *) + bytes;
}

/* Copies what the text may leave as it is, and returns where the next text goes. */
static char *copy_base(struct made *m, const struct natra_class *base,
		       char *texts)
{
	struct natra_class *class = m->class;

	class->ingress_rate_bits_per_sec = base->ingress_rate_bits_per_sec;
	class->egress_rate_bits_per_sec = base->egress_rate_bits_per_sec;
	class->dscps = base->dscps;
	class->subnets_len = base->subnets_len;
	for (size_t i = 0; i < base->subnets_len; i++) {
		m->subnets[i] = texts;
		texts = stpcpy(texts, base->subnets[i]) + 1;
	}
	return texts;
}

/* Reads a class from a text that the class points to then. *ret_item is the item that is
 * wrong, which a terminator ends. */
static int read_class(char *text, struct made *m, const char **ret_item)
{
	char *item = strchr(text, '=');
	int r = 0;

	m->class->sz = sizeof(*m->class);
	m->class->name = text;
	m->class->subnets = m->subnets;
	if (item)
		*item++ = '\0';
	while (item && *item && r == 0) {
		char *next = strchr(item, ',');

		if (next)
			*next++ = '\0';
		*ret_item = item;
		r = read_item(item, m);
		item = next;
	}
	return r;
}

/* Returns whether the subnets are there that a class says it has. */
static bool has_all_subnets(const struct natra_class *class)
{
	for (size_t i = 0; i < class->subnets_len; i++) {
		if (!class->subnets || !class->subnets[i])
			return false;
	}
	return true;
}

int class_parse(const char *text, const struct natra_class *base,
		struct natra_class **ret_class, const char **ret_item)
{
	cleanup_free struct natra_class *class = NULL;
	struct made m = {0};
	size_t subnets = 0;
	const char *item;
	char *copy;
	int r;

	if (!text || !ret_class || (base && !has_all_subnets(base)))
		return -EINVAL;
	class = calloc(1, room_for(text, base, &subnets));
	if (!class) {
		if (ret_item)
			*ret_item = text;
		return -ENOMEM;
	}
	m.class = class;
	m.subnets = (const char **)(class + 1);
	copy = (char *)(m.subnets + subnets);
	if (base)
		copy = copy_base(&m, base, copy);
	memcpy(copy, text, strlen(text) + 1);
	item = copy;
	r = read_class(copy, &m, &item);
	if (r == 0)
		*ret_class = TAKE_PTR(class);
	else if (ret_item)
		*ret_item = text + (item - copy);
	return r;
}

/* Copies a list without the space beside what separates classes and their items. Other
 * space becomes one blank, which no item has. */
static void copy_list(char *to, const char *from)
{
	static const char ends[] = ",;";
	const char *start = to;

	for (const char *at = from; *at;) {
		const size_t space = strspn(at, " \t\r\n");
		const char *next = at + space;

		if (space && to > start && !strchr(ends, to[-1]) &&
		    !strchr(ends, *next))
			*to++ = ' ';
		if (*next)
			*to++ = *next++;
		at = next;
	}
	*to = '\0';
}

/* Says what is wrong with an item, which was the error r. */
static int mistake(int r, const char *item, char *ret_wrong, size_t size)
{
	(void)snprintf(
		ret_wrong, size, "'%.*s' is %s", ITEM_SHOWN_MAX, item,
		r == -ERANGE
			? "out of range"
			: "not CIDR, ingress-rate=RATE, egress-rate=RATE or dscp=N");
	return -EINVAL;
}

static int read_list(char *text, struct natra_class *list, size_t *ret_len,
		     const char **subnets, char *ret_wrong, size_t size)
{
	char *one;

	while ((one = strsep(&text, ";"))) {
		struct made m = {.class = &list[*ret_len], .subnets = subnets};
		const char *item = one;
		int r;

		if (!*one)
			continue;
		if (*ret_len == NATRA_CLASSES_MAX) {
			(void)snprintf(ret_wrong, size,
				       "has more classes than %d",
				       NATRA_CLASSES_MAX);
			return -EINVAL;
		}
		r = read_class(one, &m, &item);
		if (r < 0)
			return mistake(r, item, ret_wrong, size);
		subnets += m.class->subnets_len;
		(*ret_len)++;
	}
	if (*ret_len)
		return 0;
	(void)snprintf(ret_wrong, size, "has no class");
	return -EINVAL;
}

int class_list_parse(const char *text, struct natra_class **ret_list,
		     size_t *ret_len, char *ret_wrong, size_t size)
{
	cleanup_free struct natra_class *list = NULL;
	size_t items = 1, len = 0;
	const char **subnets;
	char *copy;
	int r;

	for (const char *at = text; *at; at++)
		items += *at == ',' || *at == ';';
	list = calloc(1, NATRA_CLASSES_MAX * sizeof(*list) +
				 items * sizeof(*subnets) + strlen(text) + 1);
	if (!list)
		return -ENOMEM;
	subnets = (const char **)(list + NATRA_CLASSES_MAX);
	copy = (char *)(subnets + items);
	copy_list(copy, text);
	r = read_list(copy, list, &len, subnets, ret_wrong, size);
	if (r < 0)
		return r;
	*ret_list = TAKE_PTR(list);
	*ret_len = len;
	return 0;
}
