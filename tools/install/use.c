/* SPDX-License-Identifier: BSD-2-Clause */
#include "use.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "../common/json.h"
#include "../common/text.h"
#include "../pods/element.h"
#include "../pods/results.h"
#include "dropins.h"

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

static bool goes(const struct install_plan *plan, const char *path)
{
	for (size_t n = 0; n < plan->changes_len; n++) {
		if (plan->changes[n].kind == INSTALL_REMOVE &&
		    strcmp(plan->changes[n].path, path) == 0)
			return true;
	}
	return false;
}

struct dropin_search {
	const struct install_plan *plan;
	const char *type;
	char *found;
};

static int find_dropin(void *arg, const char *path, const cJSON *json,
		       const char *wrong)
{
	struct dropin_search *search = arg;

	(void)wrong;
	if (goes(search->plan, path) || !element_has_type(json, search->type))
		return 0;
	search->found = text_format("%s names it", path);
	return 1;
}

char *use_find_dropin(const struct install *i, const struct install_plan *plan,
		      const char *type)
{
	struct dropin_search search = {plan, type, NULL};
	DIR *entries = dir_list(&i->net);
	const struct dirent *entry;

	while (!search.found && entries && (entry = readdir(entries))) {
		if (entry->d_name[0] != '.')
			(void)dropins_foreach(i, entry->d_name, find_dropin,
					      &search);
	}
	if (entries)
		(void)closedir(entries);
	return search.found;
}
