/* SPDX-License-Identifier: BSD-2-Clause */
#include "info.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../common/memory.h"
#include "classes.h"
#include "group.h"
#include "json.h"
#include "origin.h"
#include "output.h"

static int append(void *arg, const struct natra_info *info)
{
	struct info_list *list = arg;

	list->items = memory_grow(list->items,
				  (list->len + 1) * sizeof(*list->items));
	list->items[list->len++] = *info;
	return 0;
}

int info_list_read(struct natra *n, struct info_list *ret_list)
{
	struct info_list list = {0};
	int r;

	r = natra_foreach_attachment(n, append, &list);
	if (r < 0) {
		info_list_free(&list);
		return r;
	}
	*ret_list = list;
	return 0;
}

void info_list_free(struct info_list *list)
{
	free(list->items);
	*list = (struct info_list){0};
}

int info_list_id_width(const struct info_list *list)
{
	int width = 2;

	for (size_t i = 0; i < list->len; i++) {
		int w = text_width(list->items[i].id);

		width = w > width ? w : width;
	}
	return width;
}

/* A library of a later version may have values that this program does not know. */
static const char *known(const char *name)
{
	return name ? name : "unknown";
}

static void print_field(const char *name, const char *text)
{
	if (text[0] == '\0')
		return;
	printf("  %-15s ", name);
	print_text(stdout, text, 0);
	putchar('\n');
}

static enum natra_direction direction_of(const struct policy_field *field)
{
	return field->offset == offsetof(struct natra_policy,
					 ingress_rate_bits_per_sec)
		       ? NATRA_DIRECTION_INGRESS
		       : NATRA_DIRECTION_EGRESS;
}

static void print_origin(const struct policy_field *field,
			 const struct natra_info *info)
{
	const char *origin = origin_of(info, direction_of(field));

	if (origin[0])
		printf(", %s of the namespace", origin);
}

static void print_value(const struct policy_field *field,
			const struct natra_info *info)
{
	uint64_t given = policy_field_get(field, &info->policy);
	uint64_t value = policy_field_get(field, &info->effective);
	const char *word = policy_field_word(field, 0);

	if (word)
		printf("%s", known(policy_field_word(field, value)));
	else if (!given && (!value || field->unit == POLICY_SIZE))
		printf("%s", field->otherwise);
	else if (field->unit == POLICY_RATE)
		printf("%s", unit_limit(value).text);
	else if (field->unit == POLICY_TIME)
		printf("%s", unit_time(value).text);
	else if (field->unit == POLICY_BURST)
		printf("%s", unit_bits(value).text);
	else if (field->unit == POLICY_SIZE)
		printf("%s", unit_size(value).text);
	else
		printf("%" PRIu64, value);
	if (field->unit == POLICY_RATE && value)
		printf(" (%" PRIu64 " bit/s)", value);
	if (policy_field_is_direction(field))
		print_origin(field, info);
	printf("%s%s", field->suffix ? field->suffix : "",
	       word || given || policy_field_is_direction(field)
		       ? ""
		       : " (default)");
}

static void print_one_more(const struct policy_field *field,
			   const struct natra_info *info)
{
	printf(", %s%s", field->title, field->title[0] ? " " : "");
	print_value(field, info);
}

/* Prints the fields that count because of `line`, and those that count because of
 * them. A limit that is not there is left out. */
static void print_more(const struct policy_field *line,
		       const struct natra_info *info)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];

		if (field->of != line->offset ||
		    !policy_field_counts(field, &info->effective) ||
		    (field->unit == POLICY_COUNT &&
		     !policy_field_get(field, &info->effective)))
			continue;
		print_one_more(field, info);
		for (size_t j = 0; j < POLICY_FIELDS_LEN; j++) {
			if (policy_fields[j].of == field->offset)
				print_one_more(&policy_fields[j], info);
		}
	}
}

static void print_group(const struct natra_policy *policy)
{
	print_text(stdout, policy->group, 0);
	if (policy->group_is_automatic)
		printf(" (automatic)");
}

/* Prints a line for each field, followed by the fields that count only because of
 * it. */
static void print_policy(const struct natra_info *info)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *line = &policy_fields[i];

		if (!line->title || line->of ||
		    (line->unit == POLICY_GROUP && !info->policy.group[0]) ||
		    (info->other_abi && !policy_field_is_direction(line)))
			continue;
		printf("  %-15s ", line->title);
		if (line->unit == POLICY_GROUP)
			print_group(&info->policy);
		else
			print_value(line, info);
		if (!info->other_abi)
			print_more(line, info);
		putchar('\n');
	}
}

static int print_subnet(void *arg, const char *cidr)
{
	bool *first = arg;

	printf("%s%s", *first ? "" : ", ", cidr);
	*first = false;
	return 0;
}

static void print_subnets(struct natra *n, const struct natra_info *info)
{
	const struct natra_policy *p = &info->policy;
	bool first = true;

	if (!p->shaped_subnets_len && !p->unshaped_subnets_len)
		return;
	printf("  %-15s ",
	       p->shaped_subnets_len ? "shaped peers" : "unshaped peers");
	if (natra_foreach_subnet(n, info->id, print_subnet, &first) < 0)
		print_text(stdout, natra_error(n), 0);
	putchar('\n');
}

/* Prints the word that was asked for, which another ABI's record does not tell. */
static void print_asked(const struct natra_info *info, const char *word)
{
	if (!info->other_abi)
		printf(" (asked: %s)", known(word));
}

static void print_bypassed(const char *direction, uint32_t percent)
{
	if (percent)
		printf("  %-15s %s by %u %% of the bytes\n", "bypassed",
		       direction, percent);
}

/* Prints how the limits are kept, for an attachment that has any. */
static void print_state(const struct natra_info *info)
{
	printf("  %-15s %s", "mode", known(natra_attach_mode_name(info->mode)));
	print_asked(info, natra_attach_mode_name(info->policy.attach_mode));
	printf("\n  %-15s %s", "egress pacing",
	       info->edt_active ? "on" : "off");
	print_asked(info, natra_edt_pacing_name(info->policy.edt_pacing));
	puts(info->fq_is_ours ? ", fq is natra's" : "");
	if (info->policy.ingress_mode == NATRA_INGRESS_MODE_PACE)
		printf("  %-15s %s\n", "ingress pacing",
		       info->pace_active ? "on" : "off");
	print_bypassed("ingress", info->ingress_bypassed_percent);
	print_bypassed("egress", info->egress_bypassed_percent);
	print_field("because", info->reason);
	printf("  %-15s ingress %u, egress %u", "program ids",
	       info->ingress_prog_id, info->egress_prog_id);
	if (info->host_prog_id)
		printf(", host side %u", info->host_prog_id);
	puts(info->program_is_current || info->other_abi
		     ? ""
		     : ", of another build (natractl upgrade)");
}

void info_print(struct natra *n, const struct natra_info *info)
{
	print_text(stdout, info->id, 0);
	printf("\n  %-15s ", "interface");
	print_text(stdout, info->ifname, 0);
	printf(" (index %u), netns %" PRIu64 "%s\n", info->ifindex,
	       info->netns_inode, info->interface_gone ? ", gone" : "");
	if (info->host_ifname[0]) {
		printf("  %-15s ", "host side");
		print_text(stdout, info->host_ifname, 0);
		printf(" (index %u)%s\n", info->host_ifindex,
		       info->host_fq_is_ours ? ", fq is natra's" : "");
	}
	print_field("network", info->network);
	print_field("label", info->label);
	if (info->other_abi)
		printf("  natra of ABI %u attached it: this natractl knows its rates only\n",
		       info->abi);
	if (info->unshaped) {
		printf("  unshaped: ");
		print_text(stdout, info->reason, 0);
		puts("\n  these limits do not hold:");
	}
	print_policy(info);
	print_subnets(n, info);
	classes_print(n, info);
	if (!info->unshaped)
		print_state(info);
	print_field("pinned in", info->pin_path);
}

/* Has the rates only, if these are all that is known. */
static cJSON *fields_json(const struct natra_policy *p, bool rates_only)
{
	cJSON *o = cJSON_CreateObject();

	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const struct policy_field *field = &policy_fields[i];
		uint64_t value = policy_field_get(field, p);

		if (rates_only && !policy_field_is_direction(field))
			continue;
		if (field->unit == POLICY_GROUP)
			json_add_text(o, field->name, p->group);
		else if (policy_field_word(field, 0))
			json_add_text(o, field->name,
				      known(policy_field_word(field, value)));
		else
			json_add_u64(o, field->name, value);
	}
	if (!rates_only)
		cJSON_AddBoolToObject(o, "group_is_automatic",
				      p->group_is_automatic);
	return o;
}

static void add_texts(cJSON *parent, const char *key, const char *const *texts,
		      size_t len)
{
	cJSON *array = cJSON_AddArrayToObject(parent, key);

	for (size_t i = 0; i < len; i++)
		cJSON_AddItemToArray(array, cJSON_CreateString(texts[i]));
}

cJSON *policy_json(const struct natra_policy *policy)
{
	cJSON *o = fields_json(policy, false), *classes;

	add_texts(o, "shaped_subnets", policy->shaped_subnets,
		  policy->shaped_subnets_len);
	add_texts(o, "unshaped_subnets", policy->unshaped_subnets,
		  policy->unshaped_subnets_len);
	if (policy->automatic_group)
		group_json(cJSON_AddObjectToObject(o, "automatic_group"),
			   policy->automatic_group);
	classes = cJSON_AddArrayToObject(o, "classes");
	for (size_t i = 0; i < policy->classes_len; i++)
		cJSON_AddItemToArray(classes, class_json(&policy->classes[i]));
	return o;
}

static int add_subnet(void *arg, const char *cidr)
{
	cJSON_AddItemToArray(arg, cJSON_CreateString(cidr));
	return 0;
}

/* Adds a list of subnets, or null if they cannot be read. */
static void add_subnets(struct natra *n, cJSON *parent, const char *key,
			const struct natra_info *info, size_t len)
{
	cJSON *array = cJSON_CreateArray();

	if (len && natra_foreach_subnet(n, info->id, add_subnet, array) < 0) {
		cJSON_Delete(array);
		array = cJSON_CreateNull();
	}
	cJSON_AddItemToObject(parent, key, array);
}

cJSON *info_json(struct natra *n, const struct natra_info *info)
{
	cJSON *o = cJSON_CreateObject();

	json_add_u64(o, "abi", info->abi);
	cJSON_AddBoolToObject(o, "other_abi", info->other_abi);
	json_add_text(o, "pin_path", info->pin_path);
	json_add_text(o, "id", info->id);
	json_add_text(o, "ifname", info->ifname);
	json_add_u64(o, "ifindex", info->ifindex);
	json_add_u64(o, "netns_inode", info->netns_inode);
	cJSON_AddBoolToObject(o, "interface_gone", info->interface_gone);
	json_add_text(o, "host_ifname", info->host_ifname);
	json_add_u64(o, "host_ifindex", info->host_ifindex);
	json_add_text(o, "network", info->network);
	json_add_text(o, "label", info->label);
	json_add_text(o, "group", info->policy.group);
	cJSON_AddBoolToObject(o, "unshaped", info->unshaped);
	json_add_text(o, "mode", known(natra_attach_mode_name(info->mode)));
	json_add_text(o, "reason", info->reason);
	cJSON_AddBoolToObject(o, "edt_active", info->edt_active);
	cJSON_AddBoolToObject(o, "pace_active", info->pace_active);
	cJSON_AddBoolToObject(o, "fq_is_ours", info->fq_is_ours);
	cJSON_AddBoolToObject(o, "host_fq_is_ours", info->host_fq_is_ours);
	json_add_u64(o, "ingress_prog_id", info->ingress_prog_id);
	json_add_u64(o, "egress_prog_id", info->egress_prog_id);
	json_add_u64(o, "host_prog_id", info->host_prog_id);
	cJSON_AddBoolToObject(o, "program_is_current",
			      info->program_is_current);
	cJSON_AddBoolToObject(o, "upgrade_is_in_place",
			      info->upgrade_is_in_place);
	json_add_u64(o, "ingress_bypassed_percent",
		     info->ingress_bypassed_percent);
	json_add_u64(o, "egress_bypassed_percent",
		     info->egress_bypassed_percent);
	json_add_text(o, "ingress_rate_origin",
		      origin_of(info, NATRA_DIRECTION_INGRESS));
	json_add_text(o, "egress_rate_origin",
		      origin_of(info, NATRA_DIRECTION_EGRESS));
	cJSON_AddItemToObject(o, "policy",
			      fields_json(&info->policy, info->other_abi));
	cJSON_AddItemToObject(o, "effective",
			      fields_json(&info->effective, info->other_abi));
	if (info->other_abi)
		return o;
	add_subnets(n, o, "shaped_subnets", info,
		    info->policy.shaped_subnets_len);
	add_subnets(n, o, "unshaped_subnets", info,
		    info->policy.unshaped_subnets_len);
	cJSON_AddItemToObject(o, "classes", classes_json(n, info));
	return o;
}
