/* SPDX-License-Identifier: BSD-2-Clause */
/* The command that attaches a pod's limits. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/policy/fields.h"
#include "../common/group.h"
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
	if ((policy->shaped_subnets_len && !policy->shaped_subnets) ||
	    (policy->unshaped_subnets_len && !policy->unshaped_subnets))
		(void)natra_foreach_subnet(n, pod->id, add_subnet, &s);
	for (size_t i = 0;
	     policy->shaped_subnets && i < policy->shaped_subnets_len; i++)
		(void)add_subnet(&s, policy->shaped_subnets[i]);
	for (size_t i = 0;
	     policy->unshaped_subnets && i < policy->unshaped_subnets_len; i++)
		(void)add_subnet(&s, policy->unshaped_subnets[i]);
}

static void add_item(struct shell *class, const char *name, uint64_t value)
{
	char text[48];
	int len = snprintf(text, sizeof(text), "%s%s=%" PRIu64,
			   class->text[class->len - 1] == '=' ? "" : ",", name,
			   value);

	shell_text(class, text, (size_t)len);
}

static int add_class(void *arg, const struct natra_class *class)
{
	struct shell text = {0};

	shell_text(&text, class->name, strlen(class->name));
	shell_text(&text, "=", 1);
	for (size_t i = 0; i < class->subnets_len; i++) {
		shell_text(&text, ",", i > 0);
		shell_text(&text, class->subnets[i], strlen(class->subnets[i]));
	}
	if (class->ingress_rate_bits_per_sec)
		add_item(&text, "ingress-rate",
			 class->ingress_rate_bits_per_sec);
	if (class->egress_rate_bits_per_sec)
		add_item(&text, "egress-rate", class->egress_rate_bits_per_sec);
	for (uint64_t dscp = 0; dscp < 64; dscp++) {
		if (class->dscps >> dscp & 1)
			add_item(&text, "dscp", dscp);
	}
	add_option(arg, "--class", text.text);
	free(text.text);
	return 0;
}

/* Adds the classes, which are where the subnets are. */
static void add_classes(struct shell *shell, const struct pod *pod,
			struct natra *n, const struct natra_policy *policy)
{
	if (policy->classes_len && !policy->classes)
		(void)natra_foreach_class(n, pod->id, add_class, shell);
	for (size_t i = 0; policy->classes && i < policy->classes_len; i++)
		(void)add_class(shell, &policy->classes[i]);
}

/* Adds what an automatic group is to be. */
static void add_limits(struct shell *shell,
		       const struct natra_group_info *group)
{
	const struct {
		const char *name;
		uint64_t value;
	} items[] = {
		{"ingress-rate", group->ingress_rate_bits_per_sec},
		{"egress-rate", group->egress_rate_bits_per_sec},
		{"weight", group->weight},
		{"floor", group->floor_bits_per_sec},
	};
	char text[NATRA_GROUP_NAME_MAX + 160] = "";
	size_t len = 0;

	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		if (items[i].value)
			len += (size_t)snprintf(text + len, sizeof(text) - len,
						"%s%s=%" PRIu64, len ? "," : "",
						items[i].name, items[i].value);
	}
	if (group->parent)
		(void)snprintf(text + len, sizeof(text) - len, ",parent=%s",
			       group->parent);
	add_option(shell, "--group-limits", text);
}

/* Adds the group. One that is automatic may have gone when the command is run. */
static void add_group(struct shell *shell, struct natra *n,
		      const struct natra_policy *policy)
{
	struct group_found found;

	add_option(shell, "--group", policy->group);
	if (policy->automatic_group)
		add_limits(shell, policy->automatic_group);
	else if (policy->group_is_automatic &&
		 group_find(n, policy->group, true, &found) > 0)
		add_limits(shell, &found.info);
}

char *pod_attach_command(const struct pod *pod, const struct node *node,
			 const struct natra_policy *policy)
{
	struct natra *n = node->n;
	struct shell shell = {0};

	shell_text(&shell, node->natractl, strlen(node->natractl));
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
	add_group(&shell, n, policy);
	add_subnets(&shell, pod, n, policy);
	add_classes(&shell, pod, n, policy);
	return shell.text;
}
