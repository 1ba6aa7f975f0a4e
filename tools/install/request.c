/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the parts of a request that are texts. */
#include <string.h>

#include "../pods/element.h"
#include "install.h"

const char *install_mode_name(enum install_mode mode)
{
	static const char *const names[INSTALL_MODE_MAX] = {
		[INSTALL_AUTO] = "auto",
		[INSTALL_DROPIN] = "dropin",
		[INSTALL_LIST] = "list",
		[INSTALL_BANDWIDTH] = "bandwidth",
		[INSTALL_PRESENT] = "present",
	};

	return names[mode];
}

bool install_mode_parse(const char *text, enum install_mode *ret_mode)
{
	for (int mode = 0; mode < INSTALL_PRESENT; mode++) {
		if (strcmp(text, install_mode_name((enum install_mode)mode)) !=
		    0)
			continue;
		*ret_mode = (enum install_mode)mode;
		return true;
	}
	return false;
}

const char *install_conf_add(cJSON *conf, const char *text)
{
	const char *equals = strchr(text, '=');
	char name[64] = "";
	const char *key;
	cJSON *value;

	if (!equals || equals == text)
		return "is not KEY=VALUE";
	if ((size_t)(equals - text) < sizeof(name))
		memcpy(name, text, (size_t)(equals - text));
	key = element_key(name);
	if (!key)
		return "has no key of natra's configuration, see natra-cni(8)";
	value = cJSON_ParseWithOpts(equals + 1, NULL, true);
	cJSON_DeleteItemFromObject(conf, key);
	cJSON_AddItemToObject(conf, key,
			      value ? value : cJSON_CreateString(equals + 1));
	return NULL;
}
