/* SPDX-License-Identifier: BSD-2-Clause */
#include "dropins.h"

#include <fcntl.h>
#include <string.h>

#include "../common/json.h"
#include "../common/text.h"
#include "../pods/element.h"
#include "libcni.h"

static bool is_dropin(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && strcmp(dot, ".conf") == 0 && entry->d_type != DT_DIR;
}

static int read_one(const struct install *i, const char *path, dropin_fn fn,
		    void *arg)
{
	cleanup_close int fd = dir_open_path(i->root_fd, path, O_RDONLY);
	cleanup_text char *text = NULL, *wrong = NULL;
	cleanup_json cJSON *json = NULL;

	if (fd < 0 || dir_read_fd(fd, &text) < 0)
		wrong = text_copy("cannot be read");
	else
		json = libcni_parse(text, &wrong);
	if (json)
		wrong = libcni_element_wrong(json);
	return fn(arg, path, wrong ? NULL : json, wrong);
}

int dropins_foreach(const struct install *i, const char *network, dropin_fn fn,
		    void *arg)
{
	cleanup_text char *path = text_format("%s/%s", i->net.path, network);
	cleanup_dir struct dir dir = DIR_INIT;
	const struct dirent *entry;
	DIR *entries;
	int r = 0;

	if (dir_open(&dir, i->root_fd, path) < 0)
		return 0;
	entries = dir_list(&dir);
	while (r == 0 && entries && (entry = readdir(entries))) {
		cleanup_text char *file =
			text_format("%s/%s", path, entry->d_name);

		if (is_dropin(entry))
			r = read_one(i, file, fn, arg);
	}
	if (entries)
		(void)closedir(entries);
	return r;
}

static void note(char **to, const char *text)
{
	if (!*to)
		*to = text_copy(text);
}

static int look_at(void *arg, const char *path, const cJSON *json,
		   const char *wrong)
{
	struct dropins *dropins = arg;
	bool is_own = strcmp(strrchr(path, '/') + 1, DROPIN_NAME) == 0;

	if (wrong && !is_own) {
		cleanup_text char *why = text_format("%s: %s", path, wrong);

		note(&dropins->wrong, why);
	} else if (element_has_type(json, BANDWIDTH_NAME)) {
		note(&dropins->bandwidth, path);
	} else if (!is_own && element_has_type(json, PLUGIN_NAME)) {
		char *text = cJSON_PrintUnformatted(json);

		note(&dropins->natra, path);
		note(&dropins->element, text);
		cJSON_free(text);
	}
	return 0;
}

void dropins_look(const struct install *i, const char *network,
		  struct dropins *ret)
{
	*ret = (struct dropins){0};
	(void)dropins_foreach(i, network, look_at, ret);
}

void dropins_free(struct dropins *dropins)
{
	free(dropins->natra);
	free(dropins->bandwidth);
	free(dropins->element);
	free(dropins->wrong);
}
