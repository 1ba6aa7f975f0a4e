/* SPDX-License-Identifier: BSD-2-Clause */
#include "classes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output.h"

void class_list_free(struct class_list *list)
{
	while (list->len > 0)
		free(list->items[--list->len]);
}

/* Makes a class out of a text and another class, and adds it in place `at`. */
static int put(struct class_list *list, size_t at, const char *text,
	       const struct natra_class *base, const char **ret_item)
{
	struct natra_class *class = NULL;
	int r = natra_parse_class(text, base, &class, ret_item);

	if (r < 0)
		return r;
	if (at == list->len)
		list->len++;
	else
		free(list->items[at]);
	list->items[at] = class;
	list->list[at] = *class;
	return 0;
}

static int copy(void *arg, const struct natra_class *class)
{
	struct class_list *list = arg;

	return list->len < NATRA_CLASSES_MAX
		       ? put(list, list->len, class->name, class, NULL)
		       : -ENOMEM;
}

int class_list_read(struct natra *n, const char *id, struct class_list *list)
{
	return natra_foreach_class(n, id, copy, list);
}

static size_t find(const struct class_list *list, const char *text)
{
	const size_t len = strcspn(text, "=");
	size_t i = 0;

	while (i < list->len && (strlen(list->list[i].name) != len ||
				 strncmp(list->list[i].name, text, len) != 0))
		i++;
	return i;
}

/* Cuts a text that may name 1024 blocks. */
struct shown {
	char text[128];
};

static struct shown shorten(const char *text)
{
	struct shown shown;

	if (snprintf(shown.text, sizeof(shown.text), "%s", text) >=
	    (int)sizeof(shown.text))
		memcpy(shown.text + sizeof(shown.text) - 4, "...", 4);
	return shown;
}

/* Says which item of a class is wrong. */
static int refuse_item(const char *text, const char *item, int r)
{
	if (r == -ENOMEM) {
		fputs("natractl: no memory for classes\n", stderr);
		return EXIT_FAILURE;
	}
	return usage_error(opts_name(OPT_CLASS), shorten(text).text,
			   "has an item that is %s: '%.*s'",
			   r == -ERANGE ? "out of range"
					: "not CIDR, ingress-rate=RATE, "
					  "egress-rate=RATE or dscp=N",
			   (int)strcspn(item, ","), item);
}

static int add(struct class_list *list, const char *text)
{
	const size_t at = find(list, text);
	const char *item = text;
	int r = put(list, at, text, at < list->len ? &list->list[at] : NULL,
		    &item);

	return r < 0 ? refuse_item(text, item, r) : 0;
}

int class_list_apply(const struct cli *cli, struct class_list *list,
		     struct natra_policy *policy)
{
	int r = 0;

	if (!cli->opts.classes_len)
		return 0;
	for (size_t i = 0; i < cli->opts.classes_len && r == 0; i++)
		r = add(list, cli->opts.classes[i]);
	if (r)
		return r;
	/* They are checked together: what one gives up another one may take. */
	policy->classes = list->list;
	policy->classes_len = list->len;
	r = natra_policy_check(cli->n, policy);
	if (r < 0)
		return refused(
			cli, r, opts_name(OPT_CLASS),
			shorten(cli->opts.classes[cli->opts.classes_len - 1])
				.text);
	return r;
}

static int print_class(void *arg, const struct natra_class *class)
{
	const char *before = ", DSCP ";

	(void)arg;
	printf("  class %-9s ingress %s", class->name,
	       unit_limit(class->ingress_rate_bits_per_sec).text);
	printf(", egress %s", unit_limit(class->egress_rate_bits_per_sec).text);
	for (int dscp = 0; dscp <= POLICY_DSCP_MAX; dscp++) {
		if (!(class->dscps >> dscp & 1))
			continue;
		printf("%s%d", before, dscp);
		before = " ";
	}
	before = ", peers ";
	for (size_t i = 0; i < class->subnets_len; i++) {
		printf("%s%s", before, class->subnets[i]);
		before = ", ";
	}
	putchar('\n');
	return 0;
}

void classes_print(struct natra *n, const struct natra_info *info)
{
	if (info->policy.classes_len &&
	    natra_foreach_class(n, info->id, print_class, NULL) < 0) {
		printf("  %-15s ", "classes");
		print_text(stdout, natra_error(n), 0);
		putchar('\n');
	}
}

cJSON *class_json(const struct natra_class *class)
{
	cJSON *o = cJSON_CreateObject(), *dscps, *subnets;

	json_add_text(o, "name", class->name);
	json_add_u64(o, "ingress_rate_bits_per_sec",
		     class->ingress_rate_bits_per_sec);
	json_add_u64(o, "egress_rate_bits_per_sec",
		     class->egress_rate_bits_per_sec);
	dscps = cJSON_AddArrayToObject(o, "dscps");
	for (int dscp = 0; dscp <= POLICY_DSCP_MAX; dscp++) {
		if (class->dscps >> dscp & 1)
			cJSON_AddItemToArray(dscps, cJSON_CreateNumber(dscp));
	}
	subnets = cJSON_AddArrayToObject(o, "subnets");
	for (size_t i = 0; i < class->subnets_len; i++)
		cJSON_AddItemToArray(subnets,
				     cJSON_CreateString(class->subnets[i]));
	return o;
}

static int add_class(void *arg, const struct natra_class *class)
{
	cJSON_AddItemToArray(arg, class_json(class));
	return 0;
}

cJSON *classes_json(struct natra *n, const struct natra_info *info)
{
	cJSON *array = cJSON_CreateArray();

	if (info->policy.classes_len &&
	    natra_foreach_class(n, info->id, add_class, array) < 0) {
		cJSON_Delete(array);
		array = cJSON_CreateNull();
	}
	return array;
}
