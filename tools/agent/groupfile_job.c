/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../cni/groups.h"
#include "../install/dir.h"
#include "../install/text.h"
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

/* A name that does not fit is one that the library refuses. */
static void add_name(struct group_names *names, const char *name)
{
	if (names->len < NATRA_GROUPS_MAX &&
	    strlen(name) <= NATRA_GROUP_NAME_MAX && !has_name(names, name))
		(void)snprintf(names->list[names->len++],
			       sizeof(names->list[0]), "%s", name);
}

static void set(struct natra *n, const cJSON *item,
		const struct group_names *before,
		struct groupfile_report *report)
{
	struct natra_group_info group = NATRA_INIT(group);
	struct failure failure = {0};

	if (groups_read_limits(item, &group, &failure)) {
		failed(report, "'%s': %s", item->string, failure.msg);
		return;
	}
	group.name = item->string;
	if (natra_group_set(n, &group) < 0)
		failed(report, "'%s': %s", item->string, natra_error(n));
	else if (!has_name(before, item->string))
		report->made++;
}

/* Sets the groups with a parent, or those without, which have to come first. */
static void set_some(struct natra *n, const cJSON *file, bool with_parent,
		     const struct group_names *before,
		     struct groupfile_report *report)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, file)
	{
		if (!json_get(item, "parent") == with_parent)
			continue;
		set(n, item, before, report);
		add_name(&report->names, item->string);
	}
}

static void remove_one(struct natra *n, const char *name,
		       struct groupfile_report *report)
{
	int r = natra_group_remove(n, name);

	if (r == 0) {
		report->removed++;
		return;
	}
	add_name(&report->names, name);
	if (r == -EBUSY)
		report->waiting++;
	else
		failed(report, "'%s': %s", name, natra_error(n));
}

/* A group is removed before its parent, which was set before it. */
static void remove_others(struct natra *n, const cJSON *file,
			  const struct group_names *before,
			  struct groupfile_report *report)
{
	for (size_t i = before->len; i-- > 0;) {
		if (!json_get_exact(file, before->list[i]))
			remove_one(n, before->list[i], report);
	}
}

static cJSON *read_file(const char *path, struct groupfile_report *report)
{
	cleanup_text char *text = NULL;
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	cJSON *file = NULL;
	size_t at = 0;
	int r = fd < 0 ? -errno : dir_read_fd(fd, &text);

	if (r < 0 || !text) {
		failed(report, "%s", strerror(-r));
		return NULL;
	}
	if (json_check(text, strlen(text), &at))
		file = cJSON_Parse(text);
	if (cJSON_IsObject(file))
		return file;
	failed(report, "is not a JSON object%s", file ? "" : ", or incomplete");
	cJSON_Delete(file);
	return NULL;
}

void groupfile_job_run(const struct jobs *jobs, const char *path,
		       const struct group_names *before,
		       struct groupfile_report *report)
{
	cleanup_cjson cJSON *file = read_file(path, report);
	struct natra *n;
	int r;

	if (!file) {
		report->names = *before;
		return;
	}
	r = jobs_open(jobs, &n);
	if (r < 0) {
		failed(report, "%s", strerror(-r));
		report->names = *before;
		return;
	}
	set_some(n, file, false, before, report);
	set_some(n, file, true, before, report);
	remove_others(n, file, before, report);
	natra_close(n);
}
