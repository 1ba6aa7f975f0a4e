/* SPDX-License-Identifier: BSD-2-Clause */
#include "lists.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "../common/json.h"
#include "../common/text.h"
#include "../pods/element.h"
#include "libcni.h"

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

static bool begins_with(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

static bool is_list(const char *file)
{
	return ends_in(file, ".conflist") || ends_in(file, ".conf") ||
	       ends_in(file, ".json");
}

static void list_free(struct list *list)
{
	free(list->file);
	free(list->text);
	free(list->wrong);
	cJSON_Delete(list->json);
}

void lists_free(struct lists *lists)
{
	for (size_t i = 0; i < lists->len; i++)
		list_free(&lists->items[i]);
	free(lists->items);
	free(lists->renamed);
	*lists = (struct lists){0};
}

static struct list *add(struct lists *lists)
{
	if (lists->len == lists->size) {
		lists->size = lists->size ? 2 * lists->size : 16;
		lists->items = memory_grow(
			lists->items, lists->size * sizeof(lists->items[0]));
	}
	return &lists->items[lists->len++];
}

static void parse(struct list *list)
{
	const cJSON *json;

	json = list->json = libcni_parse(list->text, &list->wrong);
	if (!json)
		return;
	if (list->is_chain) {
		const cJSON *plugins = json_get_exact(json, "plugins");

		list->name = json_text(json_get_exact(json, "name"));
		list->version = json_text(json_get_exact(json, "cniVersion"));
		list->plugins = cJSON_IsArray(plugins) ? plugins : NULL;
		list->wrong = libcni_list_wrong(json);
	} else {
		list->name = json_text(json_get(json, "name"));
		list->version = json_text(json_get(json, "cniVersion"));
		list->wrong = libcni_element_wrong(json);
	}
	if (list->is_chain && !list->wrong)
		list->newest = libcni_newest(json);
}

size_t list_count(const struct list *list, const char *type, int *ret_at)
{
	const cJSON *plugin;
	size_t count = 0;
	int at = 0;

	if (!list->is_chain && element_has_type(list->json, type))
		return 1;
	cJSON_ArrayForEach(plugin, list->plugins)
	{
		if (element_has_type(plugin, type)) {
			count++;
			if (ret_at)
				*ret_at = at;
		}
		at++;
	}
	return count;
}

bool list_says_true(const struct list *list, const char *key)
{
	const cJSON *item = json_get_exact(list->json, key);

	/* libcni accepts a boolean and a string. */
	return cJSON_IsTrue(item) ||
	       (cJSON_IsString(item) &&
		strcasecmp(item->valuestring, "true") == 0);
}

static bool calls_multus(const struct list *list)
{
	return list_count(list, MULTUS_NAME, NULL) ||
	       list_count(list, MULTUS_SHIM_NAME, NULL);
}

static int read_list(struct install *i, const struct dir *dir, const char *file,
		     struct list *ret)
{
	cleanup_text char *path = text_format("%s/%s", dir->path, file);
	cleanup_close int fd = -1;
	int r;

	*ret = (struct list){
		.file = text_copy(file),
		.is_chain = ends_in(file, ".conflist"),
	};
	fd = dir_open_path(i->root_fd, path, O_RDONLY);
	/* A list that cannot be read is listed without a text, since a runtime
	 * would fail at it, too. A runtime does not see a file that is gone by
	 * now. */
	r = fd < 0 ? fd : dir_read_fd(fd, &ret->text);
	if (r < 0 && r != -ENOENT && r != -EINVAL && r != -ELOOP)
		return install_fail(i, r, "%s: cannot be read: %s", path,
				    strerror(-r));
	if (ret->text)
		parse(ret);
	else
		ret->wrong = text_copy("is not a JSON object, but no text");
	ret->is_multus = calls_multus(ret);
	return 0;
}

char *list_copy_name(const struct list *list)
{
	const char *dot = strrchr(list->file, '.');

	/* The copy is a list, also if the original configures one plugin
	 * only. */
	return text_format("%s%.*s.conflist", LIST_PREFIX,
			   (int)(dot - list->file), list->file);
}

/* Returns the list that a copy with this name would be made of; NULL if there is
 * none. */
static const struct list *original_of(const struct lists *lists,
				      const char *file)
{
	for (size_t i = 0; i < lists->len; i++) {
		cleanup_text char *name = list_copy_name(&lists->items[i]);

		if (strcmp(name, file) == 0)
			return &lists->items[i];
	}
	return NULL;
}

static const cJSON *skip_bandwidth(const cJSON *element)
{
	while (element && element_has_type(element, BANDWIDTH_NAME))
		element = element->next;
	return element;
}

/* Returns whether a copy has the elements of its original and nothing else: natra's
 * may be there, or somebody has taken it out, and it may have been in the place of
 * the bandwidth plugin's. */
static bool same_elements(const struct list *copy, const struct list *original)
{
	const cJSON *wanted = original->json, *plugin;

	if (original->is_chain)
		wanted = original->plugins ? original->plugins->child : NULL;
	cJSON_ArrayForEach(plugin, copy->plugins)
	{
		if (element_has_type(plugin, PLUGIN_NAME))
			continue;
		if (!element_has_type(plugin, BANDWIDTH_NAME))
			wanted = skip_bandwidth(wanted);
		if (!wanted || !cJSON_Compare(plugin, wanted, true))
			return false;
		wanted = wanted->next;
	}
	return !skip_bandwidth(wanted);
}

/* Returns whether a text is the beginning of a copy with natra's element, cut
 * off for whatever reason. */
static bool is_begin_of_copy(const char *text, const char *primary)
{
	static const char element[] = "{\"type\":\"natra\"";
	size_t len;

	for (; *text && *text == *primary; text++)
		primary++;
	text += strspn(text, ", \t\r\n");
	len = strlen(text);
	return strncmp(text, element,
		       len < sizeof(element) ? len : sizeof(element) - 1) == 0;
}

/* Returns whether a list without the mark is a copy of another one, with or without
 * natra in it: another installer of natra's may have made it, or a person may have
 * edited natra's own copy. */
static bool is_derived(const struct lists *lists, const struct list *list)
{
	const struct list *original = original_of(lists, list->file);

	if (!original || !original->text || !list->text)
		return false;
	if (!list->json)
		return is_begin_of_copy(list->text, original->text);
	return list->name && original->name &&
	       strcmp(list->name, original->name) == 0 &&
	       same_elements(list, original);
}

static bool is_marked(const struct list *list)
{
	const cJSON *plugin;

	cJSON_ArrayForEach(plugin, list->plugins)
	{
		if (element_is_marked(plugin))
			return true;
	}
	return false;
}

static void find_ours(struct lists *lists)
{
	for (size_t i = 0; i < lists->len; i++) {
		struct list *list = &lists->items[i];

		/* Neither the name nor the content alone is enough: others copy lists
		 * that have natra's element. */
		list->is_ours = list->is_chain &&
				begins_with(list->file, LIST_PREFIX) &&
				(is_marked(list) || is_derived(lists, list));
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct list *)a)->file,
		      ((const struct list *)b)->file);
}

/* The first file by its name is kept, so that each look at a directory names the same one. */
static void note_renamed(struct lists *lists, const char *file)
{
	if (!ends_in(file, ".cilium_bak") ||
	    (lists->renamed && strcmp(lists->renamed, file) < 0))
		return;
	free(lists->renamed);
	lists->renamed = text_copy(file);
}

static int read_entries(struct install *i, const struct dir *dir, DIR *entries,
			struct lists *lists)
{
	const struct dirent *entry;

	while ((entry = readdir(entries))) {
		int r;

		note_renamed(lists, entry->d_name);
		if (!is_list(entry->d_name) || entry->d_type == DT_DIR)
			continue;
		r = read_list(i, dir, entry->d_name, add(lists));
		if (r < 0)
			return r;
	}
	return 0;
}

int lists_read(struct install *i, const struct dir *dir, struct lists *ret)
{
	DIR *entries = dir_list(dir);
	int r;

	*ret = (struct lists){0};
	if (!entries)
		return install_fail(i, -errno, "%s: cannot be read: %s",
				    dir->path, strerror(errno));
	r = read_entries(i, dir, entries, ret);
	(void)closedir(entries);
	if (ret->len)
		qsort(ret->items, ret->len, sizeof(ret->items[0]), by_name);
	find_ours(ret);
	return r;
}

bool list_is_of(const struct list *list, const char *network)
{
	return !network || (list->name && strcmp(list->name, network) == 0);
}

const struct list *lists_first(const struct install *i,
			       const struct lists *lists)
{
	for (size_t n = 0; n < lists->len; n++) {
		const struct list *list = &lists->items[n];

		if (!list->is_ours && list_is_of(list, i->settings.network))
			return list;
	}
	return NULL;
}

const char *lists_network(const struct install *i, const struct lists *lists)
{
	const struct list *first = lists_first(i, lists);

	if (i->multus.fd >= 0 || (first && first->is_multus))
		return NULL;
	return i->settings.network;
}

bool lists_have_ours(const struct lists *lists)
{
	for (size_t i = 0; i < lists->len; i++) {
		if (lists->items[i].is_ours)
			return true;
	}
	return false;
}

const struct list *lists_primary(const struct lists *lists, const char *network)
{
	for (size_t i = 0; i < lists->len; i++) {
		const struct list *list = &lists->items[i];

		if (!list->is_ours && !list->is_multus &&
		    list_is_of(list, network))
			return list;
	}
	return NULL;
}

const struct list *lists_partial(const struct lists *lists)
{
	for (size_t i = 0; i < lists->len; i++) {
		if (!lists->items[i].is_ours && !lists->items[i].json)
			return &lists->items[i];
	}
	return NULL;
}

static bool has_all_types(const struct list *list, const struct list *other)
{
	const cJSON *plugin;

	cJSON_ArrayForEach(plugin, other->plugins)
	{
		const char *type = json_text(json_get(plugin, "type"));

		if (type && !list_count(list, type, NULL))
			return false;
	}
	return cJSON_GetArraySize(list->plugins) >
	       cJSON_GetArraySize(other->plugins);
}

bool lists_is_wrapper(const struct lists *lists, const struct list *list)
{
	if (!list->name || !list->plugins)
		return false;
	if (strstr(list->file, "istio-cni"))
		return true;
	for (const struct list *other = list + 1;
	     other < lists->items + lists->len; other++) {
		if (!other->is_ours && other->name && other->plugins &&
		    strcmp(other->name, list->name) == 0 &&
		    has_all_types(list, other))
			return true;
	}
	return false;
}

const struct list *lists_naming(const struct lists *lists, const char *type)
{
	for (size_t i = 0; i < lists->len; i++) {
		if (!lists->items[i].is_ours &&
		    element_names(lists->items[i].json, type))
			return &lists->items[i];
	}
	return NULL;
}
