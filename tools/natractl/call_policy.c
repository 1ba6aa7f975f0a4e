/* SPDX-License-Identifier: BSD-2-Clause */
#include "call_policy.h"

#include <stdio.h>
#include <string.h>

#include "../../src/policy/fields.h"

int call_read_target(struct request *request, struct natra_target *target,
		     const struct natra_target **ret)
{
	static const char *const names[] = {
		"id", "ifname", "netns", "network", "label", "netns_fd", NULL};
	const char **const texts[] = {&target->id, &target->ifname,
				      &target->netns, &target->network,
				      &target->label};
	uint64_t fd = 0;
	const cJSON *json;
	int r = call_read_object(request, "target", &json);

	if (r < 0 || !json)
		return r;
	r = call_read_known(request, "target.", json, names);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && r == 0; i++)
		r = call_read_text_of(
			request, "target.", names[i],
			cJSON_GetObjectItemCaseSensitive(json, names[i]),
			texts[i]);
	if (r == 0)
		r = call_read_number_of(
			request, "target.", "netns_fd",
			cJSON_GetObjectItemCaseSensitive(json, "netns_fd"),
			INT32_MAX, &fd);
	if (r < 0)
		return r;
	target->netns_fd = (int)fd;
	*ret = target;
	return 0;
}

static int read_dscps(struct request *request, const char *what,
		      const cJSON *list, uint64_t *ret_dscps)
{
	const cJSON *item;

	if (list && !cJSON_IsNull(list) && !cJSON_IsArray(list))
		return call_refuse(request, "%sdscps: is not an array", what);
	cJSON_ArrayForEach(item, list)
	{
		uint64_t dscp = 0;
		int r = call_read_number_of(request, what, "dscps", item,
					    POLICY_DSCP_MAX, &dscp);

		if (r < 0)
			return r;
		*ret_dscps |= UINT64_C(1) << dscp;
	}
	return 0;
}

static int read_class(struct request *request, const char *what,
		      const cJSON *json, struct natra_class *class)
{
	static const char *const names[] = {"name",
					    "ingress_rate_bits_per_sec",
					    "egress_rate_bits_per_sec",
					    "dscps",
					    "subnets",
					    NULL};
	uint64_t *const rates[] = {&class->ingress_rate_bits_per_sec,
				   &class->egress_rate_bits_per_sec};
	const char **subnets = NULL;
	char path[64];
	int r;

	r = call_read_known(request, what, json, names);
	if (r == 0)
		r = call_read_text_of(
			request, what, names[0],
			cJSON_GetObjectItemCaseSensitive(json, names[0]),
			&class->name);
	for (int i = 0; i < 2 && r == 0; i++)
		r = call_read_number_of(
			request, what, names[1 + i],
			cJSON_GetObjectItemCaseSensitive(json, names[1 + i]),
			UINT64_MAX, rates[i]);
	if (r == 0)
		r = read_dscps(request, what,
			       cJSON_GetObjectItemCaseSensitive(json, "dscps"),
			       &class->dscps);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%ssubnets", what);
	r = call_read_texts(request, path,
			    cJSON_GetObjectItemCaseSensitive(json, "subnets"),
			    &subnets, &class->subnets_len);
	class->subnets = subnets;
	return r;
}

/* Reads "classes", which the policy then points to. */
static int read_classes(struct request *request, const cJSON *policy,
			struct natra_policy *ret)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(policy, "classes");
	const cJSON *item;

	if (!list || cJSON_IsNull(list))
		return 0;
	if (!cJSON_IsArray(list))
		return call_refuse(request, "policy.classes: is not an array");
	request->classes = cJSON_malloc(sizeof(*request->classes) *
					((size_t)cJSON_GetArraySize(list) + 1));
	cJSON_ArrayForEach(item, list)
	{
		struct natra_class *class =
			&request->classes[request->classes_len];
		char what[48];
		int r;

		(void)snprintf(what, sizeof(what), "policy.classes[%zu].",
			       request->classes_len++);
		*class = (struct natra_class)NATRA_INIT(*class);
		r = cJSON_IsObject(item)
			    ? read_class(request, what, item, class)
			    : call_refuse(
				      request,
				      "policy.classes[%zu]: is not an object",
				      request->classes_len - 1);
		if (r < 0)
			return r;
	}
	ret->classes = request->classes;
	ret->classes_len = request->classes_len;
	return 0;
}

/* A field that has words can be given as a word or, as the library has it, a number. */
static int read_field(struct request *request, const struct policy_field *field,
		      const cJSON *value, struct natra_policy *policy)
{
	uint64_t number = 0;
	int r;

	if (cJSON_IsString(value) &&
	    policy_field_parse_word(field, value->valuestring, &number) == 0) {
		policy_field_set(field, policy, number);
		return 0;
	}
	r = call_read_number_of(request, "policy.", field->name, value,
				field->size == sizeof(uint64_t) ? UINT64_MAX
								: UINT32_MAX,
				&number);
	if (r == 0)
		policy_field_set(field, policy, number);
	return r;
}

static int read_subnets(struct request *request, const cJSON *json,
			struct natra_policy *policy)
{
	int r = call_read_texts(
		request, "policy.shaped_subnets",
		cJSON_GetObjectItemCaseSensitive(json, "shaped_subnets"),
		&request->shaped, &policy->shaped_subnets_len);

	if (r == 0)
		r = call_read_texts(request, "policy.unshaped_subnets",
				    cJSON_GetObjectItemCaseSensitive(
					    json, "unshaped_subnets"),
				    &request->unshaped,
				    &policy->unshaped_subnets_len);
	policy->shaped_subnets = request->shaped;
	policy->unshaped_subnets = request->unshaped;
	return r;
}

int call_read_policy(struct request *request, struct natra_policy *policy,
		     const struct natra_policy **ret)
{
	const char *names[POLICY_FIELDS_LEN + 6] = {
		"shaped_subnets", "unshaped_subnets", "classes",
		"group_is_automatic", "automatic_group"};
	const cJSON *json;
	int r = call_read_object(request, "policy", &json);

	if (r < 0 || !json)
		return r;
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++)
		names[i + 5] = policy_fields[i].name;
	r = call_read_known(request, "policy.", json, names);
	for (size_t i = 0; i < POLICY_FIELDS_LEN && r == 0; i++) {
		const cJSON *value = cJSON_GetObjectItemCaseSensitive(
			json, policy_fields[i].name);

		if (value && policy_fields[i].unit != POLICY_GROUP)
			r = read_field(request, &policy_fields[i], value,
				       policy);
	}
	if (r == 0)
		r = read_subnets(request, json, policy);
	if (r == 0)
		r = call_read_group(request, json, policy);
	if (r == 0)
		r = read_classes(request, json, policy);
	if (r < 0)
		return r;
	*ret = policy;
	return 0;
}

static int read_pod(struct request *request, const cJSON *pod,
		    struct natra_annotations *ret)
{
	const cJSON *item;
	int r = 0;

	request->annotations =
		cJSON_malloc(sizeof(*ret->annotations) *
			     ((size_t)cJSON_GetArraySize(pod) + 1));
	ret->annotations = request->annotations;
	cJSON_ArrayForEach(item, pod)
	{
		struct natra_annotation *one =
			&request->annotations[ret->annotations_len++];

		*one = (struct natra_annotation){.name = item->string};
		r = call_read_text_of(request, "annotations.", item->string,
				      item, &one->value);
		if (r < 0)
			break;
	}
	return r;
}

int call_read_annotations(struct request *request,
			  struct natra_annotations *ret)
{
	const cJSON *pod;
	int r = call_read_object(request, "annotations", &pod);

	if (r == 0)
		r = call_read_bool(request, "skip_bad", &ret->skip_bad);
	if (r == 0)
		r = call_read_bool(request, "allow_all", &ret->allow_all);
	if (r == 0)
		r = call_read_texts(request, "allowed",
				    cJSON_GetObjectItemCaseSensitive(
					    request->json, "allowed"),
				    &request->allowed, &ret->allowed_len);
	ret->allowed = request->allowed;
	return r < 0 ? r : read_pod(request, pod, ret);
}

void call_policy_free(struct request *request)
{
	for (size_t i = 0; i < request->classes_len; i++)
		cJSON_free((void *)request->classes[i].subnets);
	cJSON_free(request->annotations);
	cJSON_free(request->allowed);
	cJSON_free(request->classes);
	cJSON_free(request->shaped);
	cJSON_free(request->unshaped);
}
