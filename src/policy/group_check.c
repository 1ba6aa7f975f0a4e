/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/group_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int group_check_floor(const char *field, uint64_t floor, uint64_t ingress,
		      uint64_t egress, char *ret_error, size_t size)
{
	const bool over_ingress = ingress && floor > ingress;

	if (!over_ingress && (!egress || floor <= egress))
		return 0;
	(void)snprintf(ret_error, size, "%s: %" PRIu64 " is over %s", field,
		       floor,
		       over_ingress ? "ingress_rate_bits_per_sec"
				    : "egress_rate_bits_per_sec");
	return -EINVAL;
}

static int refuse_number(const char *field, uint64_t value, const char *why,
			 char *ret_error, size_t size)
{
	(void)snprintf(ret_error, size, "%s: %" PRIu64 " %s", field, value,
		       why);
	return -EINVAL;
}

static int check_rate(const char *field, uint64_t rate, uint64_t burst,
		      char *ret_error, size_t size)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s_rate_bits_per_sec", field);
	if (rate > NATRA_RATE_MAX_BITS_PER_SEC)
		return refuse_number(name, rate, "is over 1P", ret_error, size);
	(void)snprintf(name, sizeof(name), "%s_burst_bits", field);
	if (burst && !rate)
		return refuse_number(name, burst, "without a rate", ret_error,
				     size);
	return 0;
}

int group_check_name(const char *field, const char *name, char *ret_error,
		     size_t size)
{
	if (!name || !name[0]) {
		(void)snprintf(ret_error, size, "%s: missing", field);
		return -EINVAL;
	}
	if (strlen(name) > NATRA_GROUP_NAME_MAX) {
		(void)snprintf(ret_error, size, "%s: longer than %d bytes",
			       field, NATRA_GROUP_NAME_MAX);
		return -EINVAL;
	}
	for (const char *c = name; *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 127) {
			(void)snprintf(ret_error, size,
				       "%s: has a control character", field);
			return -EINVAL;
		}
	}
	return 0;
}

static int check_rates(const struct natra_group_info *g, char *ret_error,
		       size_t size)
{
	int r = check_rate("ingress", g->ingress_rate_bits_per_sec,
			   g->ingress_burst_bits, ret_error, size);

	if (r == 0)
		r = check_rate("egress", g->egress_rate_bits_per_sec,
			       g->egress_burst_bits, ret_error, size);
	if (r == 0 && !g->ingress_rate_bits_per_sec &&
	    !g->egress_rate_bits_per_sec) {
		(void)snprintf(
			ret_error, size,
			"ingress_rate_bits_per_sec, egress_rate_bits_per_sec: at least one is needed");
		r = -EINVAL;
	}
	return r;
}

int group_check(const struct natra_group_info *g, char *ret_error, size_t size)
{
	int r = group_check_name("name", g->name, ret_error, size);

	if (r == 0 && g->parent)
		r = group_check_name("parent", g->parent, ret_error, size);
	if (r == 0)
		r = check_rates(g, ret_error, size);
	if (r < 0)
		return r;
	if (g->weight > NATRA_WEIGHT_MAX)
		return refuse_number("weight", g->weight, "is over 64",
				     ret_error, size);
	if (g->weight && !g->parent)
		return refuse_number("weight", g->weight, "without a parent",
				     ret_error, size);
	if (g->floor_bits_per_sec && !g->parent)
		return refuse_number("floor_bits_per_sec",
				     g->floor_bits_per_sec, "without a parent",
				     ret_error, size);
	return group_check_floor("floor_bits_per_sec", g->floor_bits_per_sec,
				 g->ingress_rate_bits_per_sec,
				 g->egress_rate_bits_per_sec, ret_error, size);
}

int group_check_member(const struct natra_policy *p, char *ret_error,
		       size_t size)
{
	struct natra_group_info group;
	char wrong[256];
	int r;

	if (!memchr(p->group, '\0', sizeof(p->group))) {
		(void)snprintf(ret_error, size, "group: longer than %d bytes",
			       NATRA_GROUP_NAME_MAX);
		return -EINVAL;
	}
	if (!p->group[0] && (p->group_is_automatic || p->automatic_group)) {
		(void)snprintf(ret_error, size, "%s: without a group",
			       p->automatic_group ? "automatic_group"
						  : "group_is_automatic");
		return -EINVAL;
	}
	if (!p->group[0])
		return 0;
	r = group_check_name("group", p->group, ret_error, size);
	if (r < 0 || !p->automatic_group)
		return r;
	group = *p->automatic_group;
	group.name = p->group;
	r = group_check(&group, wrong, sizeof(wrong));
	/* The policy has members of the same names. */
	if (r < 0)
		(void)snprintf(ret_error, size, "automatic_group: %s", wrong);
	return r;
}
