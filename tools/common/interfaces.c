/* SPDX-License-Identifier: BSD-2-Clause */
#include "interfaces.h"

#include <string.h>

#include "json.h"
#include "text.h"

const char *interfaces_sandbox(const cJSON *result, const char *ifname)
{
	const cJSON *interface;

	cJSON_ArrayForEach(interface, json_get(result, "interfaces"))
	{
		const char *sandbox = json_text(json_get(interface, "sandbox"));
		const char *name = json_text(json_get(interface, "name"));

		if (sandbox && sandbox[0] && name && strcmp(name, ifname) == 0)
			return sandbox;
	}
	return NULL;
}

char *interfaces_beside(const cJSON *result, const char *ifname)
{
	const char *own = interfaces_sandbox(result, ifname);
	const cJSON *interface;
	char *names = NULL;

	cJSON_ArrayForEach(interface, json_get(result, "interfaces"))
	{
		const char *sandbox = json_text(json_get(interface, "sandbox"));
		const char *name = json_text(json_get(interface, "name"));
		char *longer;

		if (!own || !sandbox || strcmp(sandbox, own) != 0 || !name ||
		    strcmp(name, ifname) == 0 || strcmp(name, "lo") == 0)
			continue;
		longer = names ? text_format("%s, %s", names, name)
			       : text_copy(name);
		free(names);
		names = longer;
	}
	return names;
}
