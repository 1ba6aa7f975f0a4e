/* SPDX-License-Identifier: BSD-2-Clause */
/* The command that attaches a pod's limits. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../src/policy/fields.h"
#include "../common/text.h"
#include "pod.h"
#include "shell.h"

static void add_option(struct shell *shell, const char *option,
		       const char *value)
{
	if (!value || !value[0])
		return;
	shell_word(shell, option);
	shell_word(shell, value);
}

static void add_field(struct shell *shell, const struct policy_field *field,
		      const struct natra_policy *policy)
{
	uint64_t value = policy_field_get(field, policy);
	const char *word = policy_field_word(field, value);
	char text[32];

	/* A group has a name, see add_group. */
	if (!value || field->unit == POLICY_GROUP)
		return;
	(void)snprintf(text, sizeof(text), "%" PRIu64 "%s", value,
		       field->unit == POLICY_TIME ? "ns" : "");
	add_option(shell, policy_field_option(field), word ? word : text);
}

struct subnets {
	struct shell *shell;
	const char *option;
};

static int add_subnet(void *arg, const char *cidr)
{
	const struct subnets *subnets = arg;

	add_option(subnets->shell, subnets->option, cidr);
	return 0;
}

static void add_subnets(struct shell *shell, const struct pod *pod,
			struct natra *n, const struct natra_policy *policy)
{
	struct subnets s = {shell, policy->shaped_subnets_len
					   ? "--shaped-subnet"
					   : "--unshaped-subnet"};

	/* The subnets of an attachment are in its record, those of a wish in its
	 * policy. */
	if (policy == &pod->info.policy &&
	    (policy->shaped_subnets_len || policy->unshaped_subnets_len))
		(void)natra_foreach_subnet(n, pod->id, add_subnet, &s);
	for (size_t i = 0;
	     policy->shaped_subnets && i < policy->shaped_subnets_len; i++)
		(void)add_subnet(&s, policy->shaped_subnets[i]);
	for (size_t i = 0;
	     policy->unshaped_subnets && i < policy->unshaped_subnets_len; i++)
		(void)add_subnet(&s, policy->unshaped_subnets[i]);
}

static void add_number(struct shell *shell, const char *option, uint64_t value)
{
	char text[32];

	if (!value)
		return;
	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	add_option(shell, option, text);
}

struct named {
	uint32_t number;
	const char *
		name; /* of a group that has to be there; NULL: the number has */
	char found[NATRA_GROUP_NAME_MAX + 1];
};

static int find_name(void *arg, const struct natra_group_info *group)
{
	struct named *named = arg;

	if (named->name ? strcmp(group->name, named->name) != 0
			: group->number != named->number)
		return 0;
	(void)snprintf(named->found, sizeof(named->found), "%s", group->name);
	return 1;
}

/* Adds the command that makes the group, as the plugin would. */
static void make_group(struct shell *shell, const struct settings *settings)
{
	const struct natra_group_info *group = &settings->group;

	shell_word(shell, "natractl");
	shell_word(shell, "group");
	shell_word(shell, "set");
	shell_word(shell, settings->group_name);
	add_number(shell, "--ingress-rate", group->ingress_rate_bits_per_sec);
	add_number(shell, "--egress-rate", group->egress_rate_bits_per_sec);
	add_option(shell, "--parent", group->parent);
	add_number(shell, "--group-weight", group->weight);
	add_number(shell, "--group-floor", group->floor_bits_per_sec);
	shell_text(shell, " && ", strlen(" && "));
}

/* Finds the name of the group that the policy is in, and adds the command that makes it
 * if it is not there. */
static struct named find_group(struct shell *shell, const struct pod *pod,
			       struct natra *n,
			       const struct natra_policy *policy)
{
	const struct settings *settings = &pod->wish.settings;
	struct named named = {.number = policy->group};

	if (!policy->group)
		return named;
	if (policy == &settings->policy)
		named.name = settings->group_name;
	if (natra_foreach_group(n, find_name, &named) != 1 && named.name) {
		make_group(shell, settings);
		memcpy(named.found, named.name, sizeof(named.found));
	}
	return named;
}

char *pod_attach_command(const struct pod *pod, struct natra *n,
			 const struct natra_policy *policy)
{
	struct shell shell = {0};
	struct named group = find_group(&shell, pod, n, policy);

	/* The first word of a command behind another one needs no further space. */
	shell_text(&shell, "natractl", strlen("natractl"));
	shell_word(&shell, "attach");
	shell_word(&shell,
		   pod->has_info ? pod->info.ifname : pod->cached.ifname);
	add_option(&shell, "--netns", pod->netns);
	add_option(&shell, "--id", pod->id);
	add_option(&shell, "--network",
		   pod->has_info ? pod->info.network : pod->cached.network);
	add_option(&shell, "--label", pod->name);
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++)
		add_field(&shell, &policy_fields[i], policy);
	add_option(&shell, "--group", group.found);
	add_subnets(&shell, pod, n, policy);
	return shell.text;
}
