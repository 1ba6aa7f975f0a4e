/* SPDX-License-Identifier: BSD-2-Clause */
#include "classes.h"

#include "../src/policy/fields.h"
#include "../tools/common/group.h"
#include "../tools/common/json.h"

/* The class that is being read, and where. */
struct reading {
	const cJSON *object;
	int number;
	struct failure *failure;
};

static int wrong_key(const struct reading *r, const char *key,
		     const cJSON *value, const char *wanted)
{
	return failure_set(r->failure, CNI_BAD_CONFIG, "classes[%d].%s: %s %s",
			   r->number, key, json_show(value).text, wanted);
}

/* 0 stands for no limit. */
static int read_rate(const struct reading *reading, const char *key,
		     uint64_t *ret_rate)
{
	const cJSON *value = json_get(reading->object, key);

	if (value && group_read_rate(value, ret_rate) < 0)
		return wrong_key(reading, key, value,
				 "is not a rate such as 10M");
	return 0;
}

static int read_dscps(const struct reading *reading, uint64_t *ret_dscps)
{
	const cJSON *list = json_get(reading->object, "dscps"), *item;

	if (list && !cJSON_IsArray(list))
		return wrong_key(reading, "dscps", list,
				 "is not a list of numbers from 0 to 63");
	cJSON_ArrayForEach(item, list)
	{
		uint64_t dscp;

		if (json_u64(item, &dscp) < 0 || dscp > POLICY_DSCP_MAX)
			return wrong_key(reading, "dscps", item,
					 "is not a number from 0 to 63");
		*ret_dscps |= UINT64_C(1) << dscp;
	}
	return 0;
}

/* All lists together have room for as many texts as a policy may have. */
static int read_subnets(const struct reading *reading, struct settings *s,
			size_t *used, struct natra_class *class)
{
	const cJSON *list = json_get(reading->object, "subnets"), *item;

	if (list && !cJSON_IsArray(list))
		return wrong_key(reading, "subnets", list,
				 "is not a list of CIDR blocks");
	class->subnets = &s->subnets[*used];
	cJSON_ArrayForEach(item, list)
	{
		if (!json_text(item))
			return wrong_key(reading, "subnets", item,
					 "is not a CIDR block");
		if (*used == NATRA_SUBNETS_MAX)
			return failure_set(reading->failure, CNI_BAD_CONFIG,
					   "classes: more than %d subnets",
					   NATRA_SUBNETS_MAX);
		s->subnets[(*used)++] = item->valuestring;
		class->subnets_len++;
	}
	return 0;
}

/* A key that is misspelt would leave the class without a limit. */
static int check_keys(const struct reading *reading)
{
	static const char *const known[] = {
		"name", "subnets", "dscps", "ingressRate", "egressRate", NULL};
	const cJSON *item = json_find_unknown(reading->object, known);

	return item ? wrong_key(reading, item->string, item,
				"is no key of a class")
		    : 0;
}

static int read_class(const struct reading *reading, struct settings *s,
		      size_t *used)
{
	struct natra_class *class = &s->classes[reading->number];
	int r;

	*class = (struct natra_class)NATRA_INIT(*class);
	class->name = json_text(json_get(reading->object, "name"));
	if (!class->name)
		return failure_set(reading->failure, CNI_BAD_CONFIG,
				   "classes[%d].name: missing",
				   reading->number);
	r = check_keys(reading);
	if (r == 0)
		r = read_rate(reading, "ingressRate",
			      &class->ingress_rate_bits_per_sec);
	if (r == 0)
		r = read_rate(reading, "egressRate",
			      &class->egress_rate_bits_per_sec);
	if (r == 0)
		r = read_dscps(reading, &class->dscps);
	return r ? r : read_subnets(reading, s, used, class);
}

int classes_read(struct settings *s, const cJSON *keys, struct natra *n,
		 struct failure *failure)
{
	const cJSON *list = json_get(keys, "classes"), *item;
	struct natra_policy checked;
	struct reading reading = {.failure = failure};
	size_t used =
		s->policy.shaped_subnets_len + s->policy.unshaped_subnets_len;

	if (!list)
		return 0;
	if (!cJSON_IsArray(list))
		return failure_set(failure, CNI_BAD_CONFIG,
				   "classes: %s is not a list of classes",
				   json_show(list).text);
	cJSON_ArrayForEach(item, list)
	{
		int r;

		if (reading.number == NATRA_CLASSES_MAX)
			return failure_set(failure, CNI_BAD_CONFIG,
					   "classes: %d are more than %d",
					   cJSON_GetArraySize(list),
					   NATRA_CLASSES_MAX);
		reading.object = item;
		r = read_class(&reading, s, &used);
		if (r)
			return r;
		reading.number++;
	}
	s->policy.classes = s->classes;
	s->policy.classes_len = (size_t)reading.number;
	checked = s->policy;
	/* Annotations may change the group's values: wanted_read() judges them later. */
	policy_leave_group(&checked, NULL);
	if (natra_policy_check(n, &checked) < 0)
		return failure_set(failure, CNI_BAD_CONFIG, "%s",
				   natra_error(n));
	return 0;
}
