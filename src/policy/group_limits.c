/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/group_limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "policy/policy.h"

/* No packet of a member is longer, but for BIG TCP. */
#define GSO_MAX_BYTES 65536

_Static_assert(NATRA_GROUPS == NATRA_GROUPS_MAX, "one maximum");
_Static_assert(sizeof(((struct natra_group_given *)0)->name) ==
		       NATRA_GROUP_NAME_MAX + 1,
	       "one maximum");

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
	if (g->automatic > 1)
		return refuse_number("automatic", g->automatic, "is over 1",
				     ret_error, size);
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
	return policy_check_floor("floor_bits_per_sec", g->floor_bits_per_sec,
				  g->ingress_rate_bits_per_sec,
				  g->egress_rate_bits_per_sec, ret_error, size);
}

/* Sets from which size on a flow is heavy: less of the group than of its parent may
 * be much. */
static void set_units(struct natra_group_limits *l, uint64_t rate,
		      uint64_t parent_rate)
{
	const uint64_t least = parent_rate && (!rate || parent_rate < rate)
				       ? parent_rate
				       : rate;

	if (!least)
		return;
	l->enter_units =
		policy_units(policy_bytes_in(least, POLICY_THRESHOLD_NS));
	l->leave_units = policy_leave_units(l->enter_units);
}

struct natra_group_limits group_limits(const struct natra_group_given *given,
				       const struct natra_group_given *parent,
				       bool egress)
{
	const uint64_t rate = given->rate_bits_per_sec[egress];
	uint64_t burst = policy_burst_bytes(given->burst_bits[egress]);
	struct natra_group_limits l = {
		/* A floor is one in the directions that have a rate. */
		.parent = policy_membership(
			given->parent, given->weight,
			rate ? given->floor_bits_per_sec : 0, egress),
	};

	set_units(&l, rate, parent ? parent->rate_bits_per_sec[egress] : 0);
	if (!rate)
		return l;
	if (!burst)
		burst = policy_bytes_in(rate, POLICY_BURST_NS);
	l.rate = policy_rate(rate, burst);
	l.ramp_mult = UINT64_MAX / (l.rate.burst_ns ? l.rate.burst_ns : 1);
	l.fair_shift[0] = policy_fair_shift(&l.rate, GSO_MAX_BYTES,
					    POLICY_FAIR_SHIFT_POLICED);
	l.fair_shift[1] = policy_fair_shift(&l.rate, GSO_MAX_BYTES,
					    POLICY_FAIR_SHIFT_HELD);
	return l;
}
