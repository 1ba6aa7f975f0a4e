/* SPDX-License-Identifier: BSD-2-Clause */
/* The options for a group that comes with its first member and goes with its last. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "group.h"
#include "output.h"

static int refuse_item(const char *item)
{
	return usage_error(
		opts_name(OPT_GROUP_LIMITS), item,
		"is not ingress-rate=RATE, egress-rate=RATE, parent=NAME, "
		"weight=N or floor=RATE");
}

static int read_item(struct automatic_group *group, const char *item)
{
	const struct {
		const char *name;
		uint64_t *rate;
	} rates[] = {
		{"ingress-rate=", &group->info.ingress_rate_bits_per_sec},
		{"egress-rate=", &group->info.egress_rate_bits_per_sec},
		{"floor=", &group->info.floor_bits_per_sec},
	};
	const char *value = strchr(item, '=');
	uint64_t weight;

	if (!value || !*++value)
		return refuse_item(item);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		if (strncmp(item, rates[i].name, strlen(rates[i].name)) == 0)
			return natra_parse_rate(value, rates[i].rate) < 0
				       ? refuse_item(item)
				       : 0;
	}
	if (strncmp(item, "parent=", strlen("parent=")) == 0 &&
	    strlen(value) <= NATRA_GROUP_NAME_MAX) {
		(void)snprintf(group->parent, sizeof(group->parent), "%s",
			       value);
		group->info.parent = group->parent;
		return 0;
	}
	if (strncmp(item, "weight=", strlen("weight=")) != 0 ||
	    natra_parse_size(value, &weight) < 0 || weight > NATRA_WEIGHT_MAX)
		return refuse_item(item);
	group->info.weight = (uint32_t)weight;
	return 0;
}

static int read_limits(const struct cli *cli, struct automatic_group *group)
{
	const char *text = cli->opts.value[OPT_GROUP_LIMITS];
	char *copy = strdup(text), *rest = copy, *item;
	int r = 0;

	*group = (struct automatic_group){.info = NATRA_INIT(group->info)};
	if (!copy)
		return usage_error(opts_name(OPT_GROUP_LIMITS), text,
				   "there is no memory");
	while (r == 0 && (item = strsep(&rest, ",")))
		r = read_item(group, item);
	free(copy);
	return r;
}

int automatic_check(const struct cli *cli)
{
	struct automatic_group group;

	return cli->opts.value[OPT_GROUP_LIMITS] ? read_limits(cli, &group) : 0;
}

static bool names_group(const struct opts *opts)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		if (policy_fields[i].unit == POLICY_GROUP)
			return opts->value[OPT_POLICY + i];
	}
	return false;
}

int automatic_apply(const struct cli *cli, struct automatic_group *group,
		    struct natra_policy *policy)
{
	const char *limits = cli->opts.value[OPT_GROUP_LIMITS];
	int r;

	if (!limits)
		return 0;
	/* A member of an automatic group can change what that is. */
	if (!policy->group[0] ||
	    (!names_group(&cli->opts) && !policy->group_is_automatic))
		return usage_error(opts_name(OPT_GROUP_LIMITS), limits,
				   "needs --group NAME");
	r = read_limits(cli, group);
	if (r)
		return r;
	policy->automatic_group = &group->info;
	policy->group_is_automatic = 1;
	r = natra_policy_check(cli->n, policy);
	return r < 0 ? refused(cli, r, opts_name(OPT_GROUP_LIMITS), limits) : 0;
}
