/* SPDX-License-Identifier: BSD-2-Clause */
#include "libcni.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../common/json.h"
#include "../common/text.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* The newest version of the specification that libcni 1.3 knows. */
#define CURRENT "1.1.0"

/* What Go's decoder puts into a field of libcni's. */
enum kind { TEXT, TEXTS, FLAGS, OBJECT, IPAM, DNS, ATTACHMENTS };

struct member {
	const char *key;
	enum kind kind;
};

static const struct member element_members[] = {
	{"type", TEXT},
	{"name", TEXT},
	{"cniVersion", TEXT},
	{"capabilities", FLAGS},
	{"ipam", IPAM},
	{"dns", DNS},
	{"prevResult", OBJECT},
	{"cni.dev/valid-attachments", ATTACHMENTS},
	{0},
};
static const struct member ipam_members[] = {{"type", TEXT}, {0}};
static const struct member dns_members[] = {
	{"nameservers", TEXTS},
	{"domain", TEXT},
	{"search", TEXTS},
	{"options", TEXTS},
	{0},
};
static const struct member attachment_members[] = {
	{"containerID", TEXT},
	{"ifname", TEXT},
	{0},
};

static char *find_wrong(const cJSON *object, const struct member *members);

static char *wrong_kind(const cJSON *item, const char *what)
{
	return text_format("the key '%s' is not %s", item->string, what);
}

/* Go takes null for any value, and leaves the field as it is. */
static bool are_all(const cJSON *list, cJSON_bool (*is)(const cJSON *))
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		if (!is(item) && !cJSON_IsNull(item))
			return false;
	}
	return true;
}

static char *attachments_wrong(const cJSON *item)
{
	const cJSON *attachment;

	if (!cJSON_IsArray(item) || !are_all(item, cJSON_IsObject))
		return wrong_kind(item, "a list of objects");
	cJSON_ArrayForEach(attachment, item)
	{
		char *wrong = find_wrong(attachment, attachment_members);

		if (wrong)
			return wrong;
	}
	return NULL;
}

static char *value_wrong(const cJSON *item, enum kind kind)
{
	if (kind == TEXT)
		return cJSON_IsString(item) ? NULL : wrong_kind(item, "a text");
	if (kind == TEXTS)
		return cJSON_IsArray(item) && are_all(item, cJSON_IsString)
			       ? NULL
			       : wrong_kind(item, "a list of texts");
	if (kind == ATTACHMENTS)
		return attachments_wrong(item);
	if (!cJSON_IsObject(item))
		return wrong_kind(item, "an object");
	if (kind == FLAGS && !are_all(item, cJSON_IsBool))
		return wrong_kind(item, "an object of true and false");
	if (kind == IPAM || kind == DNS)
		return find_wrong(item,
				  kind == IPAM ? ipam_members : dns_members);
	return NULL;
}

static bool is_ascii(const char *text)
{
	while (*text && !(*text & 0x80))
		text++;
	return !*text;
}

/* Finds a key that is there twice, in whatever letter case: readers do not agree on which
 * counts, not even libcni in a list and in a .conf. Go also takes letters beyond ASCII for
 * the same. */
static char *find_wrong(const cJSON *object, const struct member *members)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, object)
	{
		const struct member *member = members;
		char *wrong = NULL;

		if (!is_ascii(item->string))
			return text_format("the key '%s' is not ASCII",
					   item->string);
		while (member->key &&
		       strcasecmp(member->key, item->string) != 0)
			member++;
		if (!member->key)
			continue;
		if (json_member(object, member->key) != item)
			return text_format("has the key '%s' twice",
					   member->key);
		if (!cJSON_IsNull(item))
			wrong = value_wrong(item, member->kind);
		if (wrong)
			return wrong;
	}
	return NULL;
}

static bool has_huge_number(const cJSON *json)
{
	const cJSON *item;

	if (cJSON_IsNumber(json) && isinf(json->valuedouble))
		return true;
	cJSON_ArrayForEach(item, json)
	{
		if (has_huge_number(item))
			return true;
	}
	return false;
}

cJSON *libcni_parse(const char *text, char **ret_wrong)
{
	cleanup_json cJSON *json = NULL;
	cJSON *taken;
	size_t at;

	*ret_wrong = NULL;
	if (strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0) {
		*ret_wrong = text_copy(
			"is not a JSON object, but begins with a byte order mark");
	} else if (!json_check(text, strlen(text), &at)) {
		*ret_wrong = text_format(
			"is not a JSON object, from byte %zu on", at + 1);
	} else if (strstr(text, "\\u0000")) {
		*ret_wrong = text_copy(
			"is not a JSON object that natra reads: \\u0000");
	} else {
		json = cJSON_ParseWithOpts(text, NULL, true);
		if (!cJSON_IsObject(json))
			*ret_wrong = text_copy("is not a JSON object");
		else if (has_huge_number(json))
			*ret_wrong = text_copy(
				"is not a JSON object that libcni reads: a number is too large");
	}
	if (*ret_wrong)
		return NULL;
	taken = json;
	json = NULL;
	return taken;
}

char *libcni_element_wrong(const cJSON *element)
{
	const char *type = json_text(json_get(element, "type"));
	char *wrong;

	if (!cJSON_IsObject(element))
		return text_copy("has a plugin that is not an object");
	wrong = find_wrong(element, element_members);
	if (wrong || (type && type[0]))
		return wrong;
	if (cJSON_IsArray(json_get_exact(element, "plugins")))
		return text_copy(
			"is a list, which libcni takes from a .conflist only");
	return text_copy("has a plugin without a type");
}

/* Reads "1.0.0". Returns false if it is none. */
static bool read_version(const cJSON *item, unsigned long *ret)
{
	const char *text = json_text(item);

	*ret = 0;
	for (int part = 0; part < 3; part++) {
		char *end = NULL;
		unsigned long number;

		if (!text || *text < '0' || *text > '9')
			return false;
		number = strtoul(text, &end, 10);
		if (number > 9999 || *end != (part < 2 ? '.' : '\0'))
			return false;
		*ret = *ret * 10000 + number;
		text = end + 1;
	}
	return true;
}

static char *versions_wrong(const cJSON *versions)
{
	const cJSON *item;
	unsigned long number;

	if (!cJSON_IsArray(versions))
		return text_copy("the key 'cniVersions' is not a list");
	cJSON_ArrayForEach(item, versions)
	{
		if (!read_version(item, &number))
			return text_format(
				"the key 'cniVersions' has %s, which is no version",
				json_show(item).text);
	}
	return NULL;
}

const char *libcni_newest(const cJSON *list)
{
	const cJSON *versions = json_get_exact(list, "cniVersions");
	const cJSON *own = json_get_exact(list, "cniVersion"), *item;
	cleanup_json cJSON *current = cJSON_CreateString(CURRENT);
	unsigned long number, best = 0, max = 0;
	const char *found = NULL;

	(void)read_version(current, &max);
	cJSON_ArrayForEach(item, versions)
	{
		if (read_version(item, &number) && number <= max &&
		    number >= best) {
			best = number;
			found = json_text(item);
		}
	}
	if (found && read_version(own, &number) && number <= max &&
	    number > best)
		found = json_text(own);
	return found;
}

static char *flag_wrong(const cJSON *list, const char *key, bool may_be_text)
{
	const cJSON *item = json_get_exact(list, key);
	const char *text = json_text(item);

	if (!item || cJSON_IsBool(item) ||
	    (may_be_text && text &&
	     (strcasecmp(text, "true") == 0 || strcasecmp(text, "false") == 0)))
		return NULL;
	return text_format("the key '%s' is neither true nor false", key);
}

static char *plugins_wrong(const cJSON *list)
{
	const cJSON *plugins = json_get_exact(list, "plugins"), *plugin;

	if (!plugins)
		return text_copy("has no plugins");
	if (!cJSON_IsArray(plugins))
		return text_copy("the key 'plugins' is not a list");
	if (!plugins->child)
		return text_copy("has no plugins");
	cJSON_ArrayForEach(plugin, plugins)
	{
		char *wrong = libcni_element_wrong(plugin);

		if (wrong)
			return wrong;
	}
	return NULL;
}

/* The keys of a list have exactly these names, and none of them may be null. */
static char *keys_wrong(const cJSON *list)
{
	static const char *const keys[] = {
		"name",        "cniVersion", "cniVersions",
		"plugins",     "disableGC",  "loadOnlyInlinedPlugins",
		"disableCheck"};

	for (size_t n = 0; n < sizeof(keys) / sizeof(keys[0]); n++) {
		const cJSON *item, *found = NULL;

		cJSON_ArrayForEach(item, list)
		{
			if (strcmp(item->string, keys[n]) != 0)
				continue;
			if (found)
				return text_format("has the key '%s' twice",
						   keys[n]);
			if (cJSON_IsNull(item))
				return text_format("the key '%s' is null",
						   keys[n]);
			found = item;
		}
	}
	return NULL;
}

char *libcni_list_wrong(const cJSON *list)
{
	const cJSON *version = json_get_exact(list, "cniVersion");
	const cJSON *versions = json_get_exact(list, "cniVersions");
	char *wrong = keys_wrong(list);

	if (!wrong && !json_text(json_get_exact(list, "name")))
		wrong = text_copy("has no name");
	if (!wrong && version && !cJSON_IsString(version))
		wrong = wrong_kind(version, "a text");
	if (!wrong && versions)
		wrong = versions_wrong(versions);
	if (!wrong)
		wrong = flag_wrong(list, "disableCheck", false);
	if (!wrong)
		wrong = flag_wrong(list, "disableGC", true);
	if (!wrong)
		wrong = flag_wrong(list, "loadOnlyInlinedPlugins", true);
	return wrong ? wrong : plugins_wrong(list);
}
