/* SPDX-License-Identifier: BSD-2-Clause */
#include "result.h"

#include <string.h>
#include <strings.h>

#include "../tools/common/text.h"

/* Removes all members with this key, not only the one that json_get finds. */
static void remove_all(cJSON *object, const char *key)
{
	for (cJSON *item = object->child, *next; item; item = next) {
		next = item->next;
		if (strcasecmp(item->string, key) == 0)
			cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
	}
}

/* Calls `change` with each object in the list at `key`. */
static void each(cJSON *result, const char *key, void (*change)(cJSON *object))
{
	cJSON *item;

	cJSON_ArrayForEach(item, (cJSON *)json_get(result, key))
	{
		if (cJSON_IsObject(item))
			change(item);
	}
}

static void add_family(cJSON *ip)
{
	const char *address = json_text(json_get(ip, "address"));

	remove_all(ip, "version");
	if (address)
		cJSON_AddStringToObject(ip, "version",
					strchr(address, ':') ? "6" : "4");
}

static void remove_family(cJSON *ip)
{
	remove_all(ip, "version");
}

static void remove_new_fields(cJSON *interface)
{
	remove_all(interface, "mtu");
	remove_all(interface, "socketPath");
	remove_all(interface, "pciID");
}

/* Reads the version of a result; *ret_version stays as it is if there is none. */
static int read_version(const cJSON *result, enum version *ret_version,
			struct failure *failure)
{
	const cJSON *value = json_get(result, "cniVersion");

	if (!value || (cJSON_IsString(value) && !value->valuestring[0]))
		return 0;
	if (!cJSON_IsString(value))
		return failure_set(failure, CNI_BAD_CONFIG,
				   "prevResult.cniVersion: %s is not a string",
				   json_show(value).text);
	if (version_parse(value->valuestring, ret_version) < 0)
		return failure_set(
			failure, CNI_INCOMPATIBLE_VERSION,
			"prevResult.cniVersion: %s cannot be converted",
			json_show(value).text);
	return 0;
}

/* Returns the result byte for byte, with all keys that natra does not know. */
static char *pass_through(const struct conf *conf)
{
	size_t len = 0;
	const char *text = json_find_text(conf->text, "prevResult", &len);

	return text_part(text, len);
}

static char *convert(cJSON *result, enum version from, enum version to)
{
	bool from_old = from < VERSION_1_0_0, to_old = to < VERSION_1_0_0;

	if (to_old && !from_old) {
		each(result, "ips", add_family);
		each(result, "interfaces", remove_new_fields);
	} else if (from_old && !to_old) {
		each(result, "ips", remove_family);
	}
	remove_all(result, "cniVersion");
	cJSON_AddStringToObject(result, "cniVersion", version_name(to));
	return json_dump(result);
}

int result_make(struct conf *conf, char **ret_text, struct failure *failure)
{
	cJSON *result = (cJSON *)json_get(conf->json, "prevResult");
	enum version version = VERSION_MAX;
	int r;

	if (!result)
		return failure_set(
			failure, CNI_BAD_CONFIG,
			"must be called as chained plugin: there is no prevResult");
	if (!cJSON_IsObject(result))
		return failure_set(failure, CNI_BAD_CONFIG,
				   "prevResult: %s is not an object",
				   json_show(result).text);
	r = read_version(result, &version, failure);
	if (r)
		return r;
	if (version == conf->version)
		*ret_text = pass_through(conf);
	else if (version == VERSION_MAX)
		*ret_text = convert(result, conf->version, conf->version);
	else
		*ret_text = convert(result, version, conf->version);
	return 0;
}
