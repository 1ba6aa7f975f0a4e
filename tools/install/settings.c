/* SPDX-License-Identifier: BSD-2-Clause */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "../common/dir.h"
#include "../common/json.h"
#include "../common/text.h"
#include "toml.h"

#define CRIO_FILE   "/etc/crio/crio.conf"
#define CRIO_DIR    "/etc/crio/crio.conf.d"
/* Of a directory, and of all that containerd's files import. */
#define FILES_MAX   64
#define IMPORTS_MAX 256

struct looking {
	int root_fd;
	struct settings_of_runtime *settings;
	/* containerd before 2.0 takes a plugin's whole section from the last file that
	 * has it, later ones take each key. */
	bool has_sections;
	bool is_disabled; /* containerd's CRI plugin is, so kubelet cannot use it */
	/* The files of containerd that were read: one may import its own directory. */
	struct {
		dev_t dev;
		ino_t ino;
	} seen[IMPORTS_MAX];
	size_t seen_len;
};

void settings_clear(struct settings_of_runtime *settings)
{
	free(settings->file);
	free(settings->net_dir);
	free(settings->network);
	for (size_t n = 0; n < settings->bin_len; n++)
		free(settings->bin_dirs[n]);
	free(settings->wrong);
	*settings = (struct settings_of_runtime){.lists_max = 1};
}

static void forget_bins(struct settings_of_runtime *settings)
{
	while (settings->bin_len)
		free(settings->bin_dirs[--settings->bin_len]);
}

/* A path with a variable in it, as microk8s has them, is not known. */
static bool is_path(const char *text)
{
	return text && text[0] == '/' && !strchr(text, '$');
}

static void add_bin(struct settings_of_runtime *settings, const cJSON *item)
{
	if (is_path(json_text(item)) && settings->bin_len < SETTINGS_BIN_MAX)
		settings->bin_dirs[settings->bin_len++] =
			text_copy(json_text(item));
}

/* Takes the directories of plugins from a list and a single one, if there is either. */
static void set_bins(struct looking *l, const cJSON *table, const char *list,
		     const char *single)
{
	const cJSON *items = json_get_exact(table, list), *item;
	const cJSON *one = json_get_exact(table, single);

	if (!cJSON_GetArraySize(items) && !is_path(json_text(one)))
		return;
	forget_bins(l->settings);
	cJSON_ArrayForEach(item, items) add_bin(l->settings, item);
	add_bin(l->settings, one);
}

static void set_net(struct looking *l, const cJSON *table, const char *key)
{
	const char *text = json_text(json_get_exact(table, key));

	if (!is_path(text))
		return;
	free(l->settings->net_dir);
	l->settings->net_dir = text_copy(text);
}

static void note_file(struct looking *l, const char *path)
{
	free(l->settings->file);
	l->settings->file = text_copy(path);
}

/* Says what natra does not look at. */
static void note_surplus(struct looking *l, const char *path, int max)
{
	if (!l->settings->wrong)
		l->settings->wrong =
			text_format("%s: over %d files", path, max);
}

/* Returns whether the file was not read yet. Each is read once, as containerd does. */
static bool is_new(struct looking *l, const char *path, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return true;
	for (size_t i = 0; i < l->seen_len; i++) {
		if (l->seen[i].dev == st.st_dev && l->seen[i].ino == st.st_ino)
			return false;
	}
	if (l->seen_len == IMPORTS_MAX) {
		note_surplus(l, path, IMPORTS_MAX);
		return false;
	}
	l->seen[l->seen_len].dev = st.st_dev;
	l->seen[l->seen_len++].ino = st.st_ino;
	return true;
}

/* Returns what is in a file; NULL if it is not there or cannot be read. */
static cJSON *read_file(struct looking *l, const char *path, bool once)
{
	cleanup_close int fd = dir_open_path(l->root_fd, path, O_RDONLY);
	cleanup_text char *text = NULL;
	size_t line = 0;
	cJSON *json;
	int r;

	if (once && fd >= 0 && !is_new(l, path, fd))
		return NULL;
	r = fd < 0 ? fd : dir_read_fd(fd, &text);
	json = r < 0 ? NULL : toml_read(text, &line);
	if (json || r == -ENOENT || l->settings->wrong)
		return json;
	l->settings->wrong =
		r < 0 ? text_format("%s: cannot be read: %s", path,
				    strerror(-r))
		      : text_format("%s: line %zu cannot be read", path, line);
	return NULL;
}

static bool is_in(const cJSON *list, const char *text)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		if (cJSON_IsString(item) &&
		    strcmp(item->valuestring, text) == 0)
			return true;
	}
	return false;
}

/* Takes what one of containerd's files says. The section's name depends on the version of
 * the file: 3, 2 and 1. */
static void take_containerd(struct looking *l, const char *path,
			    const cJSON *json)
{
	static const char *const names[] = {"io.containerd.cri.v1.runtime",
					    "io.containerd.grpc.v1.cri", "cri"};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		const cJSON *section = json_get_exact(
			json_get_exact(json, "plugins"), names[n]);
		const cJSON *cni = json_get_exact(section, "cni");
		const cJSON *max = json_get_exact(cni, "max_conf_num");

		if (is_in(json_get_exact(json, "disabled_plugins"), names[n]))
			l->is_disabled = true;
		if (section && l->has_sections) {
			forget_bins(l->settings);
			free(l->settings->net_dir);
			l->settings->net_dir = NULL;
			l->settings->lists_max = 1;
		}
		if (!cni)
			continue;
		note_file(l, path);
		set_bins(l, cni, "bin_dirs", "bin_dir");
		set_net(l, cni, "conf_dir");
		if (cJSON_IsNumber(max))
			l->settings->lists_max = (long)max->valuedouble;
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Calls `visit` with the path of each file in the directory whose name has this pattern, in
 * the order of the names. */
static void each_file(struct looking *l, const char *dir, const char *pattern,
		      void (*visit)(struct looking *l, const char *path))
{
	cleanup_dir struct dir opened = DIR_INIT;
	char *paths[FILES_MAX];
	const struct dirent *entry;
	DIR *entries = NULL;
	size_t len = 0;

	if (dir_open(&opened, l->root_fd, dir) == 0)
		entries = dir_list(&opened);
	while (entries && (entry = readdir(entries))) {
		if (entry->d_type == DT_DIR ||
		    fnmatch(pattern, entry->d_name, 0) != 0)
			continue;
		if (len == FILES_MAX) {
			note_surplus(l, dir, FILES_MAX);
			break;
		}
		paths[len++] = text_format("%s/%s", dir, entry->d_name);
	}
	if (entries)
		(void)closedir(entries);
	/* Files that import others in turn shall not take up all descriptors. */
	dir_close(&opened);
	qsort(paths, len, sizeof(paths[0]), by_name);
	for (size_t n = 0; n < len; n++) {
		visit(l, paths[n]);
		free(paths[n]);
	}
}

static void look_at_containerd(struct looking *l, const char *path)
{
	cleanup_json cJSON *json = read_file(l, path, true);
	const cJSON *import;

	if (!json)
		return;
	take_containerd(l, path, json);
	cJSON_ArrayForEach(import, json_get_exact(json, "imports"))
	{
		const char *text = json_text(import);
		const char *base = text && text[0] == '/' ? "" : path;
		const char *slash = text ? strrchr(text, '/') : NULL;
		cleanup_text char *dir = NULL;

		if (!text)
			continue;
		/* A path that is relative begins beside the file. */
		dir = text_format("%.*s%s%.*s",
				  base[0] ? (int)(strrchr(base, '/') - base)
					  : 0,
				  base, base[0] && slash ? "/" : "",
				  slash ? (int)(slash - text) : 0, text);
		if (strpbrk(dir, "*?[") && !l->settings->wrong)
			l->settings->wrong = text_format(
				"%s: the import '%s' cannot be followed", path,
				text);
		each_file(l, dir, slash ? slash + 1 : text, look_at_containerd);
	}
}

static void look_at_crio(struct looking *l, const char *path)
{
	cleanup_json cJSON *json = read_file(l, path, false);
	const cJSON *network =
		json_get_exact(json_get_exact(json, "crio"), "network");
	const char *name =
		json_text(json_get_exact(network, "cni_default_network"));

	if (!network)
		return;
	note_file(l, path);
	set_bins(l, network, "plugin_dirs", "plugin_dir");
	set_net(l, network, "network_dir");
	if (!name)
		return;
	free(l->settings->network);
	l->settings->network = name[0] ? text_copy(name) : NULL;
}

void settings_look(int root_fd, const struct runtimes *runtimes,
		   const char *containerd, struct settings_of_runtime *ret)
{
	struct looking l = {
		.root_fd = root_fd,
		.settings = ret,
		.has_sections = runtimes->text &&
				strstr(runtimes->text, "containerd 1."),
	};
	unsigned int kinds = runtimes->kinds;

	*ret = (struct settings_of_runtime){.lists_max = 1};
	/* If there are two runtimes, kubelet uses one, and it is not known which. */
	if (!kinds || kinds == RUNTIME_CONTAINERD)
		look_at_containerd(&l, containerd);
	if (l.is_disabled)
		settings_clear(ret);
	if (kinds == RUNTIME_CRIO || (!kinds && !ret->file)) {
		look_at_crio(&l, CRIO_FILE);
		each_file(&l, CRIO_DIR, "*", look_at_crio);
	}
}
