/* SPDX-License-Identifier: BSD-2-Clause */
/* Classes as text: "NAME=10.0.0.0/8,fd00::/8,ingress-rate=1G,egress-rate=1G,dscp=46". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <natra/natra.h>

#include "policy/fields.h"
#include "util/cleanup.h"

/* A class in one piece of memory, with the texts that it points to. */
struct made {
	/* It is the first, so that the caller can free it. */
	struct natra_class class;
	const char **subnets; /* behind this struct, before the texts */
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
		m->class.dscps = 0;
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
		m->class.dscps |= UINT64_C(1) << from;
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
		m->class.subnets_len = 0;
	m->has_subnets = true;
	if (strcmp(text, "none") != 0)
		m->subnets[m->class.subnets_len++] = text;
	return 0;
}

static int read_item(const char *item, struct made *m)
{
	static const char in[] = "ingress-rate=", out[] = "egress-rate=",
			  dscp[] = "dscp=";

	if (strncmp(item, in, sizeof(in) - 1) == 0)
		return read_rate(item + sizeof(in) - 1,
				 &m->class.ingress_rate_bits_per_sec);
	if (strncmp(item, out, sizeof(out) - 1) == 0)
		return read_rate(item + sizeof(out) - 1,
				 &m->class.egress_rate_bits_per_sec);
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
	return sizeof(struct made) + subnets * sizeof(char *) + bytes;
}

/* Copies what the text may leave as it is, and returns where the next text goes. */
static char *copy_base(struct made *m, const struct natra_class *base,
		       char *texts)
{
	m->class.sz = sizeof(m->class);
	m->class.subnets = m->subnets;
	if (!base)
		return texts;
	m->class.ingress_rate_bits_per_sec = base->ingress_rate_bits_per_sec;
	m->class.egress_rate_bits_per_sec = base->egress_rate_bits_per_sec;
	m->class.dscps = base->dscps;
	m->class.subnets_len = base->subnets_len;
	for (size_t i = 0; i < base->subnets_len; i++) {
		m->subnets[i] = texts;
		texts = stpcpy(texts, base->subnets[i]) + 1;
	}
	return texts;
}

int natra_parse_class(const char *text, const struct natra_class *base,
		      struct natra_class **ret_class, const char **ret_item)
{
	cleanup_free struct made *m = NULL;
	size_t subnets = 0;
	char *copy, *item;
	int r = 0;

	if (!text || !ret_class)
		return -EINVAL;
	if (ret_item)
		*ret_item = text;
	m = calloc(1, room_for(text, base, &subnets));
	if (!m)
		return -ENOMEM;
	m->subnets = (const char **)(m + 1);
	copy = copy_base(m, base, (char *)(m->subnets + subnets));
	memcpy(copy, text, strlen(text) + 1);
	m->class.name = copy;
	item = strchr(copy, '=');
	if (item)
		*item++ = '\0';
	while (item && *item && r == 0) {
		char *next = strchr(item, ',');

		if (next)
			*next++ = '\0';
		r = read_item(item, m);
		if (r < 0 && ret_item)
			*ret_item = text + (item - copy);
		item = next;
	}
	if (r == 0)
		*ret_class = (struct natra_class *)(void *)TAKE_PTR(m);
	return r;
}
