/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../common/dir.h"
#include "../common/group.h"
#include "../common/json.h"
#include "../common/text.h"
#include "groupfile.h"

__attribute__((format(printf, 2, 3))) static void
failed(struct groupfile_report *report, const char *format, ...)
{
	va_list args;

	if (report->failed++)
		return;
	va_start(args, format);
	(void)vsnprintf(report->error, sizeof(report->error), format, args);
	va_end(args);
}

static bool has_name(const struct group_names *names, const char *name)
{
	for (size_t i = 0; i < names->len; i++) {
		if (strcmp(names->list[i], name) == 0)
			return true;
	}
	return false;
}

void groupfile_add_name(struct group_names *names, const char *name)
{
	if (names->len == NATRA_GROUPS_MAX || !name[0] ||
	    strlen(name) > NATRA_GROUP_NAME_MAX || has_name(names, name))
		return;
	(void)snprintf(names->list[names->len], sizeof(names->list[0]), "%s",
		       name);
	/* The agent reads it even if the job is killed before the next one. */
	names->len++;
}

/* Returns whether pods may wait for the group, because it is not one that the agent has
 * set, or because somebody has removed it since. */
static bool is_new(struct natra *n, const char *name,
		   const struct group_names *before,
		   const struct groupfile_report *report)
{
	return (!has_name(before, name) && !has_name(&report->names, name)) ||
	       group_find(n, name, false, NULL) == 0;
}

static bool set(struct natra *n, const cJSON *item,
		const struct group_names *before,
		struct groupfile_report *report)
{
	struct natra_group_info group = NATRA_INIT(group);
	struct group_error error;
	bool makes = is_new(n, item->string, before, report);

	if (group_read(item, &group, &error) < 0) {
		failed(report, "'%s': %s", item->string, error.text);
		return false;
	}
	/* The plugin's key `group` has these. */
	for (size_t i = 0; i < 2; i++) {
		static const char *const keys[] = {"name", "acrossNamespaces"};

		if (!json_get(item, keys[i]))
			continue;
		failed(report, "'%s': group.%s: is no key in this file",
		       item->string, keys[i]);
		return false;
	}
	group.name = item->string;
	if (natra_group_set(n, &group) < 0) {
		failed(report, "'%s': %s", item->string, natra_error(n));
		return false;
	}
	report->made += makes;
	return true;
}

/* Sets the groups with a parent, or those without, which have to come first. The agent
 * never removes a group that it could not set: it is somebody else's. */
static void set_some(struct natra *n, const cJSON *file, bool with_parent,
		     const struct group_names *before,
		     struct groupfile_report *report)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, file)
	{
		/* The last one of a name counts, and null is no group. */
		if (json_get_exact(file, item->string) != item ||
		    !json_get(item, "parent") == with_parent)
			continue;
		if (set(n, item, before, report) ||
		    has_name(before, item->string))
			groupfile_add_name(&report->names, item->string);
	}
}

static void set_all(struct natra *n, const cJSON *file,
		    const struct group_names *before,
		    struct groupfile_report *report)
{
	set_some(n, file, false, before, report);
	set_some(n, file, true, before, report);
}

/* Returns whether it is gone. */
static bool remove_one(struct natra *n, const char *name,
		       struct groupfile_report *report)
{
	int r = natra_group_remove(n, name);

	if (r >= 0)
		report->removed += (size_t)r;
	else if (r == -EBUSY)
		report->waiting++;
	else
		failed(report, "'%s': %s", name, natra_error(n));
	return r >= 0;
}

/* A group is removed before its parent, which was set before it. Those that stay keep
 * this order. */
static void remove_others(struct natra *n, const cJSON *file,
			  const struct group_names *before,
			  struct groupfile_report *report)
{
	bool stays[NATRA_GROUPS_MAX] = {false};

	for (size_t i = before->len; i-- > 0;) {
		if (!json_get_exact(file, before->list[i]))
			stays[i] = !remove_one(n, before->list[i], report);
	}
	for (size_t i = 0; i < before->len; i++) {
		if (stays[i])
			groupfile_add_name(&report->names, before->list[i]);
	}
}

/* Makes the groups what the file says. A change that is refused at first may fit once the
 * others are changed or gone: a parent's lower rate, or a floor in place of another one. */
static void apply(struct natra *n, const cJSON *file,
		  const struct group_names *before,
		  struct groupfile_report *report)
{
	bool again;

	set_all(n, file, before, report);
	again = report->failed;
	report->failed = 0;
	report->error[0] = '\0';
	remove_others(n, file, before, report);
	if (again)
		set_all(n, file, before, report);
}

static cJSON *read_file(const char *path, struct groupfile_report *report)
{
	cleanup_text char *text = NULL;
	/* Opening a FIFO would wait for its other end. */
	cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	cJSON *file = NULL;
	size_t len, at;
	int r = fd < 0 ? -errno : dir_read_fd(fd, &text);

	if (r < 0 || !text) {
		failed(report, "%s", strerror(-r));
		return NULL;
	}
	len = at = strlen(text);
	if (json_check(text, len, &at))
		file = cJSON_Parse(text);
	/* No file that has more fits into the table of groups, and each try to make one takes
	 * time in which no pod is edited. */
	if (cJSON_IsObject(file) && cJSON_GetArraySize(file) > NATRA_GROUPS_MAX)
		failed(report, "has %d groups, more than %d",
		       cJSON_GetArraySize(file), NATRA_GROUPS_MAX);
	else if (cJSON_IsObject(file))
		return file;
	else if (file)
		failed(report, "%s is not an object", json_show(file).text);
	else
		failed(report, "is not JSON at byte %zu of %zu", at, len);
	cJSON_Delete(file);
	return NULL;
}

void groupfile_job_run(const struct jobs *jobs, const char *path,
		       const struct group_names *before,
		       struct groupfile_report *report)
{
	cleanup_json cJSON *file = read_file(path, report);
	struct natra *n;
	int r;

	if (!file) {
		report->names = *before;
		return;
	}
	r = jobs_open(jobs, &n);
	if (r < 0) {
		failed(report, "open libnatra: %s", strerror(-r));
		report->names = *before;
		return;
	}
	report->is_read = true;
	apply(n, file, before, report);
	natra_close(n);
}
