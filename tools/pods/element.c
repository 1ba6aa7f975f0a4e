/* SPDX-License-Identifier: BSD-2-Clause */
#include "element.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "../../src/policy/fields.h"
#include "../common/json.h"
#include "../common/keys.h"
#include "../common/text.h"

#define CONF_NAME(key, name) #key,
#define LIMIT_NAME(key)      #key,

/* Beside these there are the keys of policy_fields. */
static const char *const keys[] = {CONF_KEYS(CONF_NAME) LIMIT_KEYS(LIMIT_NAME)};

const char *element_key(const char *key)
{
	for (size_t i = 0; i < POLICY_FIELDS_LEN; i++) {
		const char *known = policy_field_key(&policy_fields[i]);

		if (known && strcasecmp(known, key) == 0)
			return known;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcasecmp(keys[i], key) == 0)
			return keys[i];
	}
	return NULL;
}

static void copy_keys(cJSON *element, const cJSON *from)
{
	const cJSON *item;

	for (item = from ? from->child : NULL; item; item = item->next) {
		const char *key = element_key(item->string);

		if (!key)
			continue;
		cJSON_DeleteItemFromObject(element, key);
		cJSON_AddItemToObject(element, key, cJSON_Duplicate(item, 1));
	}
}

cJSON *element_json(const cJSON *conf, const cJSON *replaces)
{
	cJSON *element = cJSON_CreateObject(), *capabilities;

	cJSON_AddStringToObject(element, "type", "natra");
	capabilities = cJSON_AddObjectToObject(element, "capabilities");
	cJSON_AddTrueToObject(capabilities, "bandwidth");
	cJSON_AddTrueToObject(capabilities,
			      "io.kubernetes.cri.pod-annotations");
	copy_keys(element, replaces);
	copy_keys(element, conf);
	cJSON_AddStringToObject(element, ELEMENT_MARK, "natractl");
	return element;
}

char *element_text(const cJSON *conf, const cJSON *replaces)
{
	cJSON *element = element_json(conf, replaces);
	char *text = cJSON_PrintUnformatted(element);

	cJSON_Delete(element);
	return text;
}

char *element_file(const cJSON *conf)
{
	cleanup_json cJSON *element = element_json(conf, NULL);
	char *json = cJSON_Print(element);
	char *text = memory_new(strlen(json) * 2 + 2), *out = text;

	/* All tabs come from cJSON's layout, since it escapes those in strings.
	 * They become spaces. */
	for (const char *in = json; *in; in++) {
		if (*in == '\t' && in[-1] != ':')
			*out++ = ' ';
		*out++ = *in == '\t' ? ' ' : *in;
	}
	*out = '\n';
	cJSON_free(json);
	return text;
}

bool element_is_marked(const cJSON *element)
{
	return cJSON_GetObjectItemCaseSensitive(element, ELEMENT_MARK);
}

bool element_has_type(const cJSON *element, const char *type)
{
	const cJSON *item = json_get(element, "type");

	return cJSON_IsString(item) && strcmp(item->valuestring, type) == 0;
}

bool element_names(const cJSON *json, const char *type)
{
	const cJSON *item;

	if (element_has_type(json, type))
		return true;
	cJSON_ArrayForEach(item, json)
	{
		if (element_names(item, type))
			return true;
	}
	return false;
}

const cJSON *element_find(const cJSON *list, const char *type)
{
	const cJSON *element;

	cJSON_ArrayForEach(element,
			   cJSON_GetObjectItemCaseSensitive(list, "plugins"))
	{
		if (element_has_type(element, type))
			return element;
	}
	return NULL;
}
