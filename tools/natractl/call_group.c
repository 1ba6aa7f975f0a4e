/* SPDX-License-Identifier: BSD-2-Clause */
/* The group of a policy that is written in JSON. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "call_policy.h"

static int read_limits(struct request *request, const cJSON *json,
		       struct natra_group_info *group)
{
	static const char *const names[] = {
		"ingress_rate_bits_per_sec",
		"egress_rate_bits_per_sec",
		"ingress_burst_bits",
		"egress_burst_bits",
		"floor_bits_per_sec",
		"weight",
		"parent",
		NULL,
	};
	static const char what[] = "policy.automatic_group.";
	uint64_t weight = 0;
	uint64_t *const numbers[] = {
		&group->ingress_rate_bits_per_sec,
		&group->egress_rate_bits_per_sec,
		&group->ingress_burst_bits,
		&group->egress_burst_bits,
		&group->floor_bits_per_sec,
		&weight,
	};
	int r = call_read_known(request, what, json, names);

	for (size_t i = 0; i < 6 && r == 0; i++)
		r = call_read_number_of(
			request, what, names[i],
			cJSON_GetObjectItemCaseSensitive(json, names[i]),
			i == 5 ? UINT32_MAX : UINT64_MAX, numbers[i]);
	if (r == 0)
		r = call_read_text_of(
			request, what, names[6],
			cJSON_GetObjectItemCaseSensitive(json, names[6]),
			&group->parent);
	group->weight = (uint32_t)weight;
	/* Another language has "" for none. */
	if (group->parent && !group->parent[0])
		group->parent = NULL;
	return r;
}

int call_read_group(struct request *request, const cJSON *policy,
		    struct natra_policy *ret)
{
	const cJSON *is_automatic =
		cJSON_GetObjectItemCaseSensitive(policy, "group_is_automatic");
	const cJSON *limits =
		cJSON_GetObjectItemCaseSensitive(policy, "automatic_group");
	const char *name = "";
	int r = call_read_text_of(
		request, "policy.", "group",
		cJSON_GetObjectItemCaseSensitive(policy, "group"), &name);

	if (r < 0)
		return r;
	/* A name that is too long stays without its terminator, which the library
	 * refuses. */
	memcpy(ret->group, name, strnlen(name, sizeof(ret->group)));
	if (is_automatic && !cJSON_IsBool(is_automatic))
		return call_refuse(
			request,
			"policy.group_is_automatic: is neither true nor false");
	ret->group_is_automatic = cJSON_IsTrue(is_automatic);
	if (!limits || cJSON_IsNull(limits))
		return 0;
	if (!cJSON_IsObject(limits))
		return call_refuse(request,
				   "policy.automatic_group: is not an object");
	request->group = (struct natra_group_info)NATRA_INIT(request->group);
	ret->automatic_group = &request->group;
	return read_limits(request, limits, &request->group);
}
