/* SPDX-License-Identifier: BSD-2-Clause */
#include "group.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

int group_read_rate(const cJSON *value, uint64_t *ret_bits_per_sec)
{
	uint64_t rate = 0;
	int r = cJSON_IsNumber(value)
			? json_u64(value, &rate)
			: natra_parse_rate(json_text(value), &rate);

	if (r < 0 || rate > NATRA_RATE_MAX_BITS_PER_SEC)
		return -EINVAL;
	*ret_bits_per_sec = rate;
	return 0;
}

static int wrong_key(const char *key, const cJSON *value, const char *wanted,
		     struct group_error *error)
{
	(void)snprintf(error->text, sizeof(error->text), "group%s%s: %s %s",
		       key[0] ? "." : "", key, json_show(value).text, wanted);
	return -EINVAL;
}

/* Reads a text, which is NULL if there is no such key. */
static int read_text(const cJSON *object, const char *key, const char **ret,
		     struct group_error *error)
{
	const cJSON *value = json_get(object, key);

	*ret = json_text(value);
	if (value && (!*ret || !**ret || strlen(*ret) > NATRA_GROUP_NAME_MAX))
		return wrong_key(key, value, "is not a name of 1 to 127 bytes",
				 error);
	for (const char *c = *ret; c && *c; c++) {
		if ((unsigned char)*c < ' ' || *c == 127)
			return wrong_key(key, value, "has a control character",
					 error);
	}
	return 0;
}

static int read_weight(const cJSON *object, uint32_t *ret,
		       struct group_error *error)
{
	const cJSON *value = json_get(object, "weight");
	uint64_t weight = 0;

	if (value && (json_u64(value, &weight) < 0 || weight < 1 ||
		      weight > NATRA_WEIGHT_MAX))
		return wrong_key("weight", value,
				 "is not a number from 1 to 64", error);
	*ret = (uint32_t)weight;
	return 0;
}

static int read_keys(const cJSON *object, struct natra_group_info *group,
		     struct group_error *error)
{
	const struct {
		const char *key;
		uint64_t *rate;
	} rates[] = {{"ingressRate", &group->ingress_rate_bits_per_sec},
		     {"egressRate", &group->egress_rate_bits_per_sec},
		     {"floor", &group->floor_bits_per_sec}};
	int r = read_text(object, "name", &group->name, error);

	if (r == 0)
		r = read_text(object, "parent", &group->parent, error);
	for (size_t i = 0; i < 3 && r == 0; i++) {
		const cJSON *value = json_get(object, rates[i].key);

		if (value && group_read_rate(value, rates[i].rate) < 0)
			r = wrong_key(rates[i].key, value,
				      "is not a rate such as 10M", error);
	}
	return r ? r : read_weight(object, &group->weight, error);
}

bool group_has_rates(const struct natra_group_info *group)
{
	return group->ingress_rate_bits_per_sec ||
	       group->egress_rate_bits_per_sec;
}

const char *group_floor_wrong(uint64_t floor, uint64_t ingress, uint64_t egress)
{
	if (ingress && floor > ingress)
		return "is over ingressRate";
	return egress && floor > egress ? "is over egressRate" : NULL;
}

int group_read(const cJSON *object, struct natra_group_info *ret,
	       struct group_error *error)
{
	/* A rate that is misspelt would leave the group without a limit. */
	static const char *const known[] = {
		"name",   "ingressRate", "egressRate",       "parent",
		"weight", "floor",       "acrossNamespaces", NULL};
	struct natra_group_info group = NATRA_INIT(group);
	const cJSON *unknown = json_find_unknown(object, known);
	const char *wrong;
	int r;

	if (!cJSON_IsObject(object))
		return wrong_key("", object, "is not an object", error);
	if (unknown)
		return wrong_key(unknown->string, unknown,
				 "is no key of a group", error);
	r = read_keys(object, &group, error);
	if (r)
		return r;
	if (group.parent && !group_has_rates(&group))
		return wrong_key("parent", json_get(object, "parent"),
				 "without a rate", error);
	if (!group.parent && (group.weight || group.floor_bits_per_sec)) {
		const char *key = group.weight ? "weight" : "floor";

		return wrong_key(key, json_get(object, key), "without a parent",
				 error);
	}
	wrong = group_floor_wrong(group.floor_bits_per_sec,
				  group.ingress_rate_bits_per_sec,
				  group.egress_rate_bits_per_sec);
	if (wrong)
		return wrong_key("floor", json_get(object, "floor"), wrong,
				 error);
	*ret = group;
	return 0;
}

struct search {
	const char *name;
	bool is_automatic;
	struct group_found *found;
};

static int take_group(void *arg, const struct natra_group_info *group)
{
	const struct search *search = arg;
	struct group_found *found = search->found;

	if (group->automatic != search->is_automatic ||
	    strcmp(group->name, search->name) != 0)
		return 0;
	if (!found)
		return 1;
	/* A newer library's is longer, and an older one's shorter. */
	found->info = (struct natra_group_info){0};
	memcpy(&found->info, group,
	       group->sz < sizeof(found->info) ? group->sz
					       : sizeof(found->info));
	found->info.sz = sizeof(found->info);
	found->info.name = search->name;
	if (group->parent) {
		(void)snprintf(found->parent, sizeof(found->parent), "%s",
			       group->parent);
		found->info.parent = found->parent;
	}
	return 1;
}

int group_find(struct natra *n, const char *name, bool is_automatic,
	       struct group_found *ret)
{
	struct search search = {name, is_automatic, ret};

	return natra_foreach_group(n, take_group, &search);
}
