/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/util/clock.h"
#include "../common/group.h"
#include "cli.h"
#include "group.h"
#include "json.h"
#include "limits.h"
#include "output.h"

/* They are told apart by the fields of the policy that they would set. */
uint64_t group_limit_options(void)
{
	static const size_t offsets[] = {
		offsetof(struct natra_policy, ingress_rate_bits_per_sec),
		offsetof(struct natra_policy, egress_rate_bits_per_sec),
		offsetof(struct natra_policy, ingress_burst_bits),
		offsetof(struct natra_policy, egress_burst_bits),
		offsetof(struct natra_policy, group_weight),
		offsetof(struct natra_policy, group_floor_bits_per_sec),
	};
	uint64_t options = 0;

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		for (size_t j = 0; j < sizeof(offsets) / sizeof(offsets[0]);
		     j++) {
			if (policy_fields[i].offset == offsets[j])
				options |= OPT_BIT(OPT_POLICY + i);
		}
	}
	return options;
}

/* Lets the options for an attachment change what a group is. */
static int apply(const struct cli *cli, struct natra_group_info *group)
{
	struct natra_policy policy = NATRA_INIT(policy);
	int r;

	policy.ingress_rate_bits_per_sec = group->ingress_rate_bits_per_sec;
	policy.egress_rate_bits_per_sec = group->egress_rate_bits_per_sec;
	policy.ingress_burst_bits = group->ingress_burst_bits;
	policy.egress_burst_bits = group->egress_burst_bits;
	policy.group[0] = '?'; /* any, so that it can have a weight */
	policy.group_weight = group->weight;
	policy.group_floor_bits_per_sec = group->floor_bits_per_sec;
	r = limits_apply(cli, &policy);
	if (r)
		return r;
	group->ingress_rate_bits_per_sec = policy.ingress_rate_bits_per_sec;
	group->egress_rate_bits_per_sec = policy.egress_rate_bits_per_sec;
	group->ingress_burst_bits = policy.ingress_burst_bits;
	group->egress_burst_bits = policy.egress_burst_bits;
	group->weight = policy.group_weight;
	group->floor_bits_per_sec = policy.group_floor_bits_per_sec;
	return 0;
}

/* Returns whether what a group is in its parent was given. */
static bool given_of_parent(const struct opts *opts)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		if (policy_field_is_of_group(&policy_fields[i]) &&
		    opts->value[OPT_POLICY + i])
			return true;
	}
	return false;
}

/* Checks the options before the kernel is asked, but for what depends on the limits that
 * the group has. */
static int check_set(const struct cli *cli, const char *name)
{
	const char *parent = cli->opts.value[OPT_PARENT];
	int r = opts_check_text(opts_name(OPT_PARENT), parent,
				NATRA_GROUP_NAME_MAX);

	if (r)
		return r;
	if (strcmp(name, "none") == 0)
		return usage_error("NAME", name, "stands for no group");
	if (parent && strcmp(parent, "none") == 0 &&
	    given_of_parent(&cli->opts))
		return usage_error(opts_name(OPT_PARENT), parent,
				   "cannot have a weight or a floor");
	return limits_check(cli);
}

/* What is not given stays as it was. */
static int set(struct cli *cli, const char *name)
{
	const char *parent = cli->opts.value[OPT_PARENT];
	struct group_found found = {.info = NATRA_INIT(found.info)};
	int r = check_set(cli, name);

	if (r)
		return r;
	r = group_find(cli->n, name, false, &found);
	if (r < 0)
		return failure(cli, r);
	found.info.name = name;
	if (parent)
		found.info.parent = strcmp(parent, "none") == 0 ? NULL : parent;
	r = apply(cli, &found.info);
	if (r)
		return r;
	if (!found.info.parent && parent) {
		found.info.weight = 0;
		found.info.floor_bits_per_sec = 0;
	}
	r = natra_group_set(cli->n, &found.info);
	return r < 0 ? failure(cli, r) : EXIT_SUCCESS;
}

/* Prints that free small flows were over the limit, if they ever were. */
static void print_over(const struct natra_group_info *group, int direction)
{
	const uint64_t over_ns = group->over_limit_time_ns[direction];

	if (over_ns)
		printf("  %-10s %.1f times the limit passed in a second, %" PRIu64
		       " s ago\n",
		       "", (double)group->over_limit_percent[direction] / 100,
		       (clock_ns(CLOCK_MONOTONIC) - over_ns) / NS_PER_S);
}

static void print_direction(const char *title, uint64_t rate, uint64_t burst,
			    const struct natra_count *charged)
{
	printf("  %-10s %s", title, unit_limit(rate).text);
	if (burst)
		printf(", burst %s", unit_bits(burst).text);
	printf(", charged %" PRIu64 " packets, %s\n", charged->packets,
	       unit_size(charged->bytes).text);
}

static void print_group(const struct natra_group_info *group)
{
	print_text(stdout, group->name, 0);
	putchar('\n');
	print_direction("ingress", group->ingress_rate_bits_per_sec,
			group->ingress_burst_bits, &group->ingress_charged);
	print_over(group, NATRA_DIRECTION_INGRESS);
	print_direction("egress", group->egress_rate_bits_per_sec,
			group->egress_burst_bits, &group->egress_charged);
	print_over(group, NATRA_DIRECTION_EGRESS);
	if (group->parent) {
		printf("  %-10s ", "parent");
		print_text(stdout, group->parent, 0);
		printf(", weight %u, floor %s\n",
		       group->weight ? group->weight : 1,
		       group->floor_bits_per_sec
			       ? unit_limit(group->floor_bits_per_sec).text
			       : "none");
	}
	printf("  %-10s %u\n", "members", group->members);
	if (group->automatic)
		printf("  %-10s %s\n", "automatic",
		       "it goes with its last member");
}

static void add_count(cJSON *parent, const char *key,
		      const struct natra_count *count)
{
	cJSON *o = cJSON_AddObjectToObject(parent, key);

	json_add_u64(o, "packets", count->packets);
	json_add_u64(o, "bytes", count->bytes);
}

static void add_over(cJSON *parent, const char *key,
		     const struct natra_group_info *group, int direction)
{
	cJSON *o = cJSON_AddObjectToObject(parent, key);

	json_add_u64(o, "time_ns", group->over_limit_time_ns[direction]);
	json_add_u64(o, "percent", group->over_limit_percent[direction]);
}

void group_json(cJSON *to, const struct natra_group_info *group)
{
	json_add_text(to, "parent", group->parent ? group->parent : "");
	json_add_u64(to, "ingress_rate_bits_per_sec",
		     group->ingress_rate_bits_per_sec);
	json_add_u64(to, "egress_rate_bits_per_sec",
		     group->egress_rate_bits_per_sec);
	json_add_u64(to, "ingress_burst_bits", group->ingress_burst_bits);
	json_add_u64(to, "egress_burst_bits", group->egress_burst_bits);
	json_add_u64(to, "weight", group->weight);
	json_add_u64(to, "floor_bits_per_sec", group->floor_bits_per_sec);
}

static cJSON *json_of(const struct natra_group_info *group)
{
	cJSON *o = cJSON_CreateObject();

	json_add_text(o, "name", group->name);
	group_json(o, group);
	json_add_u64(o, "members", group->members);
	cJSON_AddBoolToObject(o, "automatic", group->automatic != 0);
	add_count(o, "ingress_charged", &group->ingress_charged);
	add_count(o, "egress_charged", &group->egress_charged);
	json_add_u64(o, "ingress_free_bytes",
		     group->free_bytes[NATRA_DIRECTION_INGRESS]);
	json_add_u64(o, "egress_free_bytes",
		     group->free_bytes[NATRA_DIRECTION_EGRESS]);
	add_over(o, "ingress_over_limit", group, NATRA_DIRECTION_INGRESS);
	add_over(o, "egress_over_limit", group, NATRA_DIRECTION_EGRESS);
	return o;
}

struct showing {
	const char *wanted; /* NULL: all */
	cJSON *json;        /* NULL: print text */
	bool any;
};

static int show_one(void *arg, const struct natra_group_info *group)
{
	struct showing *showing = arg;

	if (showing->wanted && strcmp(group->name, showing->wanted) != 0)
		return 0;
	showing->any = true;
	if (showing->json)
		cJSON_AddItemToArray(showing->json, json_of(group));
	else
		print_group(group);
	return 0;
}

static int no_group(const char *name)
{
	fputs("natractl: there is no group '", stderr);
	print_text(stderr, name, 0);
	fputs("'\n", stderr);
	return EXIT_FAILURE;
}

static int show(struct cli *cli, const char *name)
{
	struct showing showing = {
		.wanted = name,
		.json = wants_json(cli) ? cJSON_CreateArray() : NULL,
	};
	int r = natra_foreach_group(cli->n, show_one, &showing);

	if (r < 0 || (name && !showing.any)) {
		cJSON_Delete(showing.json);
		return r < 0 ? failure(cli, r) : no_group(name);
	}
	if (showing.json)
		json_print(showing.json);
	return EXIT_SUCCESS;
}

static int remove_group(struct cli *cli, const char *name)
{
	int r = natra_group_remove(cli->n, name);

	if (r < 0)
		return failure(cli, r);
	return r > 0 ? EXIT_SUCCESS : no_group(name);
}

int cmd_group(struct cli *cli)
{
	static const struct {
		const char *name;
		int (*run)(struct cli *cli, const char *name);
		bool needs_name;
	} actions[] = {
		{"set", set, true},
		{"show", show, false},
		{"remove", remove_group, true},
	};
	const struct opts *opts = &cli->opts;
	const char *name = opts->args_len > 1 ? opts->args[1] : NULL;
	int r = opts_check_text("NAME", name, NATRA_GROUP_NAME_MAX);

	if (r)
		return r;
	if (opts->args_len > 2)
		return usage_error("group", opts->args[2],
				   "is one argument too many");
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(actions[i].name, opts->arg) != 0)
			continue;
		if (actions[i].needs_name && !name)
			return usage_error(opts->arg, NULL, "NAME is missing");
		if (actions[i].run != set &&
		    limits_given(opts,
				 group_limit_options() | OPT_BIT(OPT_PARENT)))
			return usage_error(opts->arg, NULL,
					   "takes no limits: 'group set' does");
		return actions[i].run(cli, name);
	}
	return usage_error("group", opts->arg,
			   "is not one of set, show, remove");
}
