/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../tools/common/name.h"
#include "env.h"

/* The version of a configuration without cniVersion. */
#define OLDEST_VERSION "0.1.0"

static const char *const version_names[VERSION_MAX] = {
	[VERSION_0_3_0] = "0.3.0", [VERSION_0_3_1] = "0.3.1",
	[VERSION_0_4_0] = "0.4.0", [VERSION_1_0_0] = "1.0.0",
	[VERSION_1_1_0] = "1.1.0",
};

const char *version_name(enum version version)
{
	return version_names[version];
}

int version_parse(const char *text, enum version *ret_version)
{
	for (int i = 0; i < VERSION_MAX; i++) {
		if (strcmp(version_names[i], text) == 0) {
			*ret_version = (enum version)i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_json(struct conf *conf, size_t len, struct failure *failure)
{
	size_t at = len;

	if (json_check(conf->text, len, &at))
		conf->json = cJSON_ParseWithOpts(conf->text, NULL, false);
	if (!conf->json)
		return failure_set(
			failure, CNI_DECODE,
			"the network configuration is not JSON at byte %zu of %zu",
			at, len);
	if (!cJSON_IsObject(conf->json))
		return failure_set(
			failure, CNI_DECODE,
			"the network configuration is %s, not an object",
			json_show(conf->json).text);
	return 0;
}

/* Reads a string, which is "" if the key is absent. */
static int read_text(const struct conf *conf, const char *key,
		     const char **ret_text, struct failure *failure)
{
	const cJSON *value = json_get(conf->json, key);

	if (value && !cJSON_IsString(value))
		return failure_set(failure, CNI_DECODE,
				   "%s: %s is not a string", key,
				   json_show(value).text);
	*ret_text = value ? value->valuestring : "";
	return 0;
}

static int read_version(struct conf *conf, struct failure *failure)
{
	const char *text = "";
	char known[64];
	size_t len = 0;
	int r = read_text(conf, "cniVersion", &text, failure);

	if (r)
		return r;
	if (!text[0])
		text = OLDEST_VERSION;
	if (version_parse(text, &conf->version) == 0)
		return 0;
	for (int i = 0; i < VERSION_MAX; i++)
		len += (size_t)snprintf(known + len, sizeof(known) - len,
					"%s\"%s\"", i ? " " : "",
					version_name((enum version)i));
	(void)failure_set(failure, CNI_INCOMPATIBLE_VERSION,
			  "incompatible CNI versions");
	failure_add_details(failure,
			    "config is \"%.64s\", plugin supports [%s]", text,
			    known);
	return CNI_INCOMPATIBLE_VERSION;
}

int conf_parse(struct conf *conf, const char *text, size_t len,
	       struct failure *failure)
{
	int r;

	*conf = (struct conf){
		.text = text, .name = "", .version = VERSION_NEWEST};
	r = parse_json(conf, len, failure);
	if (r == 0)
		r = read_text(conf, "name", &conf->name, failure);
	if (r)
		return r;
	if (!conf->name[0])
		return failure_set(failure, CNI_BAD_CONFIG,
				   "missing network name");
	if (name_wrong(conf->name)) {
		(void)failure_set(
			failure, CNI_BAD_CONFIG,
			"name: invalid characters found in network name");
		failure_add_details(failure, "%s", conf->name);
		return CNI_BAD_CONFIG;
	}
	return read_version(conf, failure);
}

void conf_free(struct conf *conf)
{
	json_freep(&conf->json);
}

int conf_object(const cJSON *parent, const char *key, const char *path,
		const cJSON **ret, struct failure *failure)
{
	const cJSON *value = json_get(parent, key);

	if (value && !cJSON_IsObject(value))
		return failure_set(failure, CNI_BAD_CONFIG,
				   "%s: %s is not an object", path,
				   json_show(value).text);
	*ret = value;
	return 0;
}
