/* SPDX-License-Identifier: BSD-2-Clause */
#include "use.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "../common/json.h"
#include "../common/text.h"
#include "../pods/element.h"
#include "../pods/results.h"

struct search {
	const char *type;
	struct install_plan *plan;
	char *found;
};

/* A file that cannot be read, as after a loss of power, holds no removal up: its pod
 * has an attachment if natra limits it. */
static int find_result(void *arg, const char *path, const char *text)
{
	struct search *search = arg;
	cleanup_json cJSON *result = text ? cJSON_Parse(text) : NULL;
	cleanup_json cJSON *list = results_list(result);

	if (!list)
		plan_warn(
			search->plan,
			"%s: cannot be read, so the list of its pod is not known",
			path);
	if (!element_names(list, search->type))
		return 0;
	search->found = text_format("%s names it", path);
	return 1;
}

char *use_find(const struct install *i, struct install_plan *plan,
	       const char *type)
{
	struct search search = {.type = type, .plan = plan};
	int r = results_foreach(i->root_fd, find_result, &search);

	if (r < 0 && r != -ENOENT)
		return text_format("the caches of libcni's results: %s",
				   strerror(-r));
	return search.found;
}

static char *name_in(const struct dir *dir, const struct lists *lists,
		     const char *type)
{
	const struct list *list = lists_naming(lists, type);

	return list ? text_format("%s/%s names it", dir->path, list->file)
		    : NULL;
}

/* Reads the lists beside which Multus' own is, if they are in another directory. */
static void read_multus(struct install *i, struct lists *ret)
{
	*ret = (struct lists){0};
	if (i->multus.fd >= 0)
		(void)lists_read(i, &i->multus, ret);
}

char *use_find_list(struct install *i, const struct lists *lists,
		    const char *type)
{
	cleanup_lists struct lists multus = {0};
	char *found = name_in(&i->net, lists, type);

	if (found)
		return found;
	read_multus(i, &multus);
	return name_in(&i->multus, &multus, type);
}

/* Multus sees the directories under other paths, so only the name counts. */
static char *delegation_in(const struct dir *dir, const struct lists *lists,
			   const struct lists *own, const char **ret_file)
{
	for (size_t n = 0; n < lists->len * own->len; n++) {
		const struct list *list = &lists->items[n / own->len];
		const struct list *copy = &own->items[n % own->len];
		const char *path =
			json_text(json_get(list->json, "clusterNetwork"));
		const char *slash = path ? strrchr(path, '/') : NULL;

		if (!list->is_multus || !copy->is_ours || !path ||
		    strcmp(slash ? slash + 1 : path, copy->file) != 0)
			continue;
		*ret_file = copy->file;
		return text_format(
			"%s/%s delegates to %s, so all new pods would fail",
			dir->path, list->file, path);
	}
	return NULL;
}

char *use_find_delegation(struct install *i, const struct lists *lists,
			  const char **ret_file)
{
	cleanup_lists struct lists multus = {0};
	char *found = delegation_in(&i->net, lists, lists, ret_file);

	if (found)
		return found;
	read_multus(i, &multus);
	return delegation_in(&i->multus, &multus, lists, ret_file);
}

static bool is_named_conf(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && strcmp(dot, ".conf") == 0;
}

static bool goes(const struct install_plan *plan, const char *path)
{
	for (size_t n = 0; n < plan->changes_len; n++) {
		if (plan->changes[n].kind == INSTALL_REMOVE &&
		    strcmp(plan->changes[n].path, path) == 0)
			return true;
	}
	return false;
}

static bool dropin_calls(const struct install *i, const char *path,
			 const char *type)
{
	cleanup_close int fd = dir_open_path(i->root_fd, path, O_RDONLY);
	cleanup_text char *text = NULL;
	cleanup_json cJSON *json = NULL;

	if (fd < 0 || dir_read_fd(fd, &text) < 0)
		return false;
	json = cJSON_Parse(text);
	return element_has_type(json, type);
}

static char *find_in(const struct install *i, const struct install_plan *plan,
		     const struct dir *dir, const char *type)
{
	DIR *entries = dir_list(dir);
	const struct dirent *entry;
	char *found = NULL;

	while (!found && entries && (entry = readdir(entries))) {
		cleanup_text char *path =
			text_format("%s/%s", dir->path, entry->d_name);

		if (is_named_conf(entry->d_name) && !goes(plan, path) &&
		    dropin_calls(i, path, type))
			found = text_format("%s names it", path);
	}
	if (entries)
		(void)closedir(entries);
	return found;
}

char *use_find_dropin(const struct install *i, const struct install_plan *plan,
		      const char *type)
{
	DIR *entries = dir_list(&i->net);
	const struct dirent *entry;
	char *found = NULL;

	/* Symbolic links to directories and to files are followed here, because
	 * a runtime follows them. */
	while (!found && entries && (entry = readdir(entries))) {
		cleanup_text char *path =
			text_format("%s/%s", i->net.path, entry->d_name);
		cleanup_dir struct dir dir = DIR_INIT;

		if (entry->d_name[0] != '.' &&
		    dir_open(&dir, i->root_fd, path) == 0)
			found = find_in(i, plan, &dir, type);
	}
	if (entries)
		(void)closedir(entries);
	return found;
}
