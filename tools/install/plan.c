/* SPDX-License-Identifier: BSD-2-Clause */
#include "plan.h"

#include <string.h>

#include "../common/name.h"
#include "../common/text.h"
#include "../pods/element.h"
#include "copy.h"
#include "plugin.h"

struct install_plan *plan_new(void)
{
	return memory_new(sizeof(struct install_plan));
}

void install_plan_free(struct install_plan *plan)
{
	if (!plan)
		return;
	for (size_t n = 0; n < plan->warnings_len; n++)
		free(plan->warnings[n]);
	for (size_t n = 0; n < plan->changes_len; n++) {
		free(plan->changes[n].subdir);
		free(plan->changes[n].name);
		free(plan->changes[n].path);
		free(plan->changes[n].before);
		free(plan->changes[n].after);
	}
	free(plan->reason);
	free(plan->kept);
	free(plan->primary_file);
	free(plan->primary_text);
	free(plan->element);
	free(plan);
}

void plan_freep(struct install_plan **plan)
{
	install_plan_free(*plan);
}

void plan_warn(struct install_plan *plan, const char *format, ...)
{
	va_list args;

	if (plan->warnings_len == INSTALL_WARNINGS_MAX)
		return;
	va_start(args, format);
	plan->warnings[plan->warnings_len++] = text_vformat(format, args);
	va_end(args);
}

/* Adds a change to a plan. Returns NULL if the plan is full. */
static struct install_change *add(struct install_plan *plan,
				  enum install_kind kind, const char *dir,
				  const char *subdir, const char *name)
{
	struct install_change *change;

	if (plan->changes_len == INSTALL_CHANGES_MAX)
		return NULL;
	change = &plan->changes[plan->changes_len++];
	change->kind = kind;
	change->subdir = subdir ? text_copy(subdir) : NULL;
	change->name = text_copy(name);
	change->path = text_format("%s/%s%s%s", dir, subdir ? subdir : "",
				   subdir ? "/" : "", name);
	return change;
}

void plan_bin(const struct install *i, struct install_plan *plan,
	      enum install_kind kind, const char *name)
{
	struct install_change *change =
		add(plan, kind, i->bin.path, NULL, name);

	if (change)
		change->in_bin_dir = true;
}

void plan_write(const struct install *i, struct install_plan *plan,
		const char *subdir, const char *name, const char *before,
		const char *after)
{
	struct install_change *change =
		add(plan, INSTALL_WRITE, i->net.path, subdir, name);

	if (!change)
		return;
	change->before = before ? text_copy(before) : NULL;
	change->after = text_copy(after);
}

void plan_remove(const struct install *i, struct install_plan *plan,
		 const char *subdir, const char *name, const char *before)
{
	struct install_change *change =
		add(plan, INSTALL_REMOVE, i->net.path, subdir, name);

	if (change && before)
		change->before = text_copy(before);
}

/* Calls `visit` with each subdirectory of the configuration directory. */
static void each_subdir(const struct install *i,
			void (*visit)(void *arg, const struct dir *dir,
				      const char *name),
			void *arg)
{
	DIR *entries = dir_list(&i->net);
	const struct dirent *entry;

	while (entries && (entry = readdir(entries))) {
		cleanup_dir struct dir dir = DIR_INIT;

		/* This also leaves out "." and "..". */
		if (!name_wrong(entry->d_name) &&
		    (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
		    dir_open_below(&dir, &i->net, entry->d_name) == 0)
			visit(arg, &dir, entry->d_name);
	}
	if (entries)
		(void)closedir(entries);
}

struct visit {
	const struct install *i;
	struct install_plan *plan;
	const struct lists *lists;
	const char *network;
	bool keep;
};

/* Plans to remove what a killed installer left in a subdirectory. That may also
 * be the directory itself, empty because its drop-in was not there yet, or not
 * any more. A directory that has no network's name is somebody else's. */
static void visit_stale(void *arg, const struct dir *dir, const char *name)
{
	const struct visit *v = arg;

	if (dir_has(dir, DIR_TEMPORARY) ||
	    (dir_has(&v->i->net, DIR_SCRATCH) && dir_is_empty(dir) &&
	     lists_primary(v->lists, name)))
		plan_remove(v->i, v->plan, name, DIR_TEMPORARY, NULL);
}

void plan_stale(const struct install *i, struct install_plan *plan,
		const struct lists *lists)
{
	struct visit v = {.i = i, .plan = plan, .lists = lists};

	if (dir_has(&i->bin, DIR_TEMPORARY))
		plan_bin(i, plan, INSTALL_REMOVE, DIR_TEMPORARY);
	if (dir_has(&i->net, DIR_TEMPORARY))
		plan_remove(i, plan, NULL, DIR_TEMPORARY, NULL);
	if (dir_has(&i->net, DIR_REMOVAL))
		plan_remove(i, plan, NULL, DIR_REMOVAL, NULL);
	each_subdir(i, visit_stale, &v);
}

void plan_remove_lists(const struct install *i, struct install_plan *plan,
		       const struct lists *lists, const char *but,
		       const struct list *moved)
{
	for (size_t n = 0; n < lists->len; n++) {
		const struct list *list = &lists->items[n];
		cleanup_text char *guests = NULL;

		if (!list->is_ours || (but && strcmp(list->file, but) == 0))
			continue;
		plan_remove(i, plan, NULL, list->file, list->text);
		guests = list == moved ? NULL : copy_guests(lists, list);
		if (guests)
			plan_warn(
				plan,
				"%s/%s goes, and with it plugins that others have put there, and have to put into the list that the runtime uses then: %s",
				i->net.path, list->file, guests);
	}
}

static bool wants_dropin(const struct visit *v, const char *name)
{
	if (!v->lists)
		return false;
	if (strcmp(name, v->network) == 0)
		return v->keep;
	/* If a list is just being written, it may be this network's. */
	return lists_primary(v->lists, name) || lists_partial(v->lists);
}

static void visit_dropin(void *arg, const struct dir *dir, const char *name)
{
	const struct visit *v = arg;
	cleanup_text char *text = NULL;

	if (dir_read(dir, DROPIN_NAME, &text) == 0 &&
	    strstr(text, ELEMENT_MARK) && !wants_dropin(v, name))
		plan_remove(v->i, v->plan, name, DROPIN_NAME, text);
}

void plan_remove_dropins(const struct install *i, struct install_plan *plan,
			 const struct lists *lists, const char *network,
			 bool keep)
{
	struct visit v = {i, plan, lists, network, keep};

	each_subdir(i, visit_dropin, &v);
}

void plan_reload(const struct install *i, struct install_plan *plan)
{
	bool owed = dir_has(&i->net, DIR_SCRATCH);

	for (size_t n = 0; n < plan->changes_len; n++) {
		if (!plan->changes[n].in_bin_dir)
			owed = true;
	}
	if (owed)
		(void)add(plan, INSTALL_RELOAD, i->net.path, NULL, DIR_SCRATCH);
}

bool plan_restore(const struct install *i, struct install_plan *plan)
{
	bool other;

	if (!dir_has(&i->bin, KEPT_NAME))
		return false;
	/* If somebody has put another plugin there since, that one stays. If
	 * somebody has removed natra's, the plugin that was kept is the only
	 * one. */
	other = dir_has(&i->bin, BANDWIDTH_NAME) &&
		!plugin_is_natra(&i->bin, BANDWIDTH_NAME);
	plan_bin(i, plan, other ? INSTALL_REMOVE : INSTALL_RESTORE,
		 other ? KEPT_NAME : BANDWIDTH_NAME);
	return true;
}
