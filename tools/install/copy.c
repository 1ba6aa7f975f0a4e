/* SPDX-License-Identifier: BSD-2-Clause */
#include "copy.h"

#include <string.h>

#include "../common/json.h"
#include "../common/text.h"
#include "../pods/element.h"
#include "splice.h"

static char *copy_of(const struct install *i, const struct list *primary)
{
	cleanup_text char *element = NULL;
	int at = -1;

	if (!primary->is_chain) {
		element = element_text(i->request->conf, NULL);
		return splice_single(primary->text, primary->name,
				     primary->version, element);
	}
	(void)list_count(primary, BANDWIDTH_NAME, &at);
	element = element_text(i->request->conf,
			       cJSON_GetArrayItem(primary->plugins, at));
	return splice_list(primary->text, element, at);
}

/* Returns whether the copy is right, by reading it as a runtime will. */
static bool is_good_copy(const char *text, const struct list *primary)
{
	cleanup_json cJSON *json = cJSON_ParseWithOpts(text, NULL, true);
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "name");
	const cJSON *plugins =
		cJSON_GetObjectItemCaseSensitive(json, "plugins");
	int wanted =
		primary->is_chain ? cJSON_GetArraySize(primary->plugins) : 1;
	const cJSON *plugin;
	int natra = 0;

	cJSON_ArrayForEach(plugin, plugins) natra +=
		element_has_type(plugin, PLUGIN_NAME);
	if (!list_count(primary, BANDWIDTH_NAME, NULL))
		wanted++;
	return cJSON_IsString(name) &&
	       strcmp(name->valuestring, primary->name) == 0 && natra == 1 &&
	       cJSON_GetArraySize(plugins) == wanted;
}

bool copy_is_guest(const cJSON *element, bool is_behind)
{
	return is_behind || element_has_type(element, "istio-cni") ||
	       element_has_type(element, "linkerd-cni");
}

/* Compares all of two lists but their plugins. */
static bool same_rest(const cJSON *a, const cJSON *b)
{
	cleanup_json cJSON *left = cJSON_Duplicate(a, true);
	cleanup_json cJSON *right = cJSON_Duplicate(b, true);

	cJSON_DeleteItemFromObjectCaseSensitive(left, "plugins");
	cJSON_DeleteItemFromObjectCaseSensitive(right, "plugins");
	return cJSON_Compare(left, right, true);
}

/* Goes through the plugins of a copy that is there beside those that it should have. Returns
 * whether these are all there, in their order, with guests only between and behind them. The
 * guests are added to `guests`. */
static bool find_guests(const cJSON *present, const cJSON *wanted,
			cJSON *guests)
{
	const cJSON *next = wanted->child, *plugin;
	bool is_behind = false, is_same = true;

	cJSON_ArrayForEach(plugin, present)
	{
		if (next && cJSON_Compare(plugin, next, true)) {
			next = next->next;
		} else if (copy_is_guest(plugin, is_behind)) {
			cJSON_AddItemToArray(guests,
					     cJSON_Duplicate(plugin, true));
		} else {
			is_same = false;
		}
		/* Where natra's element is to be the last one, the original never had
		 * an element that follows it. */
		if (element_has_type(plugin, PLUGIN_NAME))
			is_behind = element_has_type(
				cJSON_GetArrayItem(
					wanted, cJSON_GetArraySize(wanted) - 1),
				PLUGIN_NAME);
	}
	return is_same && !next;
}

char *copy_guests(const struct lists *lists, const struct list *copy)
{
	const struct list *own = lists_primary(lists, copy->name);
	const cJSON *plugin;
	char *types = NULL;

	cJSON_ArrayForEach(plugin, copy->plugins)
	{
		const char *type = json_text(json_get(plugin, "type"));
		char *longer;

		if (!type || element_has_type(plugin, PLUGIN_NAME) ||
		    (own ? list_count(own, type, NULL) > 0
			 : !copy_is_guest(plugin, false)))
			continue;
		longer = text_format("%s%s%s", types ? types : "",
				     types ? ", " : "", type);
		free(types);
		types = longer;
	}
	return types;
}

static char *add_guests(char *text, const cJSON *guests)
{
	const cJSON *guest;

	cJSON_ArrayForEach(guest, guests)
	{
		char *element = cJSON_PrintUnformatted(guest);
		char *longer = splice_list(text, element, -1);

		cJSON_free(element);
		free(text);
		text = longer;
	}
	return text;
}

char *copy_make(const struct install *i, const struct list *primary,
		const struct list *present)
{
	cleanup_json cJSON *wanted = NULL, *guests = cJSON_CreateArray();
	char *text = copy_of(i, primary);

	if (text && !is_good_copy(text, primary)) {
		free(text);
		return NULL;
	}
	if (!text || !present || present->wrong)
		return text;
	wanted = cJSON_ParseWithOpts(text, NULL, true);
	if (find_guests(present->plugins, json_get_exact(wanted, "plugins"),
			guests) &&
	    same_rest(present->json, wanted)) {
		free(text);
		return text_copy(present->text);
	}
	return add_guests(text, guests);
}
