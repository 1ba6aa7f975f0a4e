/* SPDX-License-Identifier: BSD-2-Clause */
#include "use.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "element.h"
#include "text.h"

#define RESULTS "/var/lib/cni/results"

static int digit_of(char c)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c ? strchr(digits, c) : NULL;

	return found ? (int)(found - digits) : -1;
}

/* Decodes base64. Returns NULL if the text is none. */
static char *decode(const char *text)
{
	char *out = memory_new(strlen(text) + 1);
	unsigned int bits = 0, have = 0;
	size_t len = 0;

	for (; *text && *text != '='; text++) {
		int digit = digit_of(*text);

		if (digit < 0) {
			free(out);
			return NULL;
		}
		bits = (bits << 6 | (unsigned int)digit) & 0xffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[len++] = (char)(bits >> have);
		}
	}
	return out;
}

/* Returns the list that a pod was made with, from the text of a file in
 * libcni's cache; NULL if it cannot be read. */
static cJSON *list_of(const char *text)
{
	cleanup_json cJSON *result = cJSON_Parse(text);
	const cJSON *conf = cJSON_GetObjectItemCaseSensitive(result, "config");
	cleanup_text char *list = NULL;

	if (cJSON_IsString(conf))
		list = decode(conf->valuestring);
	return list ? cJSON_Parse(list) : NULL;
}

static bool calls(const char *text, const char *type)
{
	cleanup_json cJSON *list = list_of(text);
	const cJSON *plugin;

	if (!list)
		return true;
	cJSON_ArrayForEach(plugin,
			   cJSON_GetObjectItemCaseSensitive(list, "plugins"))
	{
		if (element_has_type(plugin, type))
			return true;
	}
	return element_has_type(list, type);
}

char *use_find(const struct install *i, const char *type)
{
	cleanup_dir struct dir results = DIR_INIT;
	const struct dirent *entry;
	char *found = NULL;
	DIR *entries = NULL;
	int r = dir_open(&results, i->root_fd, RESULTS);

	if (r == -ENOENT)
		return NULL;
	if (r == 0)
		entries = dir_list(&results);
	if (!entries)
		return text_copy(RESULTS " cannot be read");
	while (!found && (entry = readdir(entries))) {
		cleanup_text char *text = NULL;

		if (entry->d_name[0] == '.')
			continue;
		r = dir_read(&results, entry->d_name, &text);
		if (r == -ENOENT || (r == 0 && !calls(text, type)))
			continue;
		found = text_format("%s/%s names it", RESULTS, entry->d_name);
	}
	(void)closedir(entries);
	return found;
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
