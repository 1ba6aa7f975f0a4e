/* SPDX-License-Identifier: BSD-2-Clause */
#include "origin.h"

#include "../common/namespaces.h"

/* Returns NULL if there is no file, or if it cannot be read, of which doctor tells. */
static const cJSON *file(void)
{
	static cJSON *json;
	static bool is_read;
	struct namespaces_error error;

	if (!is_read)
		(void)namespaces_load(NAMESPACES_FILE, &json, &error);
	is_read = true;
	return json;
}

const char *origin_of(const struct natra_info *info,
		      enum natra_direction direction)
{
	const bool in = direction == NATRA_DIRECTION_INGRESS;
	struct namespaces_error error;
	struct namespace_rule rule;
	uint64_t rate, max, standard;

	if (!file() ||
	    namespaces_find(file(), info->label, &rule, &error) < 0 ||
	    !rule.name)
		return "";
	rate = in ? info->policy.ingress_rate_bits_per_sec
		  : info->policy.egress_rate_bits_per_sec;
	max = in ? rule.max.ingress_rate_bits_per_sec
		 : rule.max.egress_rate_bits_per_sec;
	standard = in ? rule.standard.ingress_rate_bits_per_sec
		      : rule.standard.egress_rate_bits_per_sec;
	return rate && rate == max        ? "maximum"
	       : rate && rate == standard ? "default"
					  : "";
}
