/* SPDX-License-Identifier: BSD-2-Clause */
#include "use.h"

#include <errno.h>
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

/* Base64; NULL: it is none. */
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

/* The list that a pod was made with, from a file of the cache. */
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
