/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "../../src/policy/fields.h"
#include "call_read.h"

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

int call_read_classes(struct request *request, const cJSON *policy,
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

void call_classes_free(struct request *request)
{
	while (request->classes_len > 0)
		cJSON_free((void *)request->classes[--request->classes_len]
				   .subnets);
	cJSON_free(request->classes);
	request->classes = NULL;
}
