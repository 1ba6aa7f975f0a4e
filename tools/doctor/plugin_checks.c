/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the file of natra's plugin. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../common/text.h"
#include "../install/plugin.h"
#include "check.h"

/* Returns whether the plugin's file is there, and what it is. */
static bool is_there(const struct node *node, struct stat *ret)
{
	return !node->bin_error &&
	       fstatat(node->i->bin.fd, node->type, ret, 0) == 0;
}

static bool is_natra(const struct node *node)
{
	return !node->bin_error && plugin_is_natra(&node->i->bin, node->type);
}

static void report(const struct finder *f, const char *key, const char *value)
{
	cleanup_text char *path =
		text_format("%s/%s", f->node->bin_dir, f->node->type);

	found(f, "file", path, "install", f->node->install, key, value, NULL);
}

static void no_dir(const struct finder *f)
{
	if (f->node->has_chain && f->node->bin_error)
		found(f, "dir", f->node->bin_dir, NULL);
}

/* Without natra in the list, the plugin is not needed. */
static void missing(const struct finder *f)
{
	struct stat st;

	if (f->node->element && !f->node->bin_error && !is_there(f->node, &st))
		report(f, "", "");
}

static void foreign(const struct finder *f)
{
	const struct node *node = f->node;
	struct stat st;
	const char *wrong = is_there(node, &st)
				    ? plugin_wrong(&node->i->bin, node->type)
				    : NULL;

	if (wrong)
		report(f, "wrong", wrong);
}

static void not_executable(const struct finder *f)
{
	struct stat st;

	if (is_there(f->node, &st) && (st.st_mode & 0111) != 0111)
		report(f, "", "");
}

static void open_to_all(const struct finder *f)
{
	struct stat st;
	char mode[8];

	if (!is_there(f->node, &st) || !(st.st_mode & 022))
		return;
	(void)snprintf(mode, sizeof(mode), "%o", st.st_mode & 07777U);
	report(f, "mode", mode);
}

static void no_start(const struct finder *f)
{
	cleanup_text char *version = NULL;
	struct stat st;
	int r;

	if (!is_natra(f->node) || !is_there(f->node, &st) ||
	    (st.st_mode & 0111) != 0111)
		return;
	r = plugin_ask_version(&f->node->i->bin, f->node->type, &version);
	if (r < 0)
		report(f, "why", strerror(-r));
}

static void other_version(const struct finder *f)
{
	cleanup_text char *version = NULL, *path = NULL;

	if (!is_natra(f->node) ||
	    plugin_ask_version(&f->node->i->bin, f->node->type, &version) < 0 ||
	    strcmp(version, natra_version()) == 0)
		return;
	path = text_format("%s/%s", f->node->bin_dir, f->node->type);
	found(f, "file", path, "have", version, "want", natra_version(),
	      "install", f->node->install, NULL);
}

static void came_back(const struct finder *f)
{
	const struct node *node = f->node;
	cleanup_text char *install = NULL;

	if (node->bin_error || !dir_has(&node->i->bin, KEPT_NAME) ||
	    !dir_has(&node->i->bin, BANDWIDTH_NAME) ||
	    plugin_is_natra(&node->i->bin, BANDWIDTH_NAME))
		return;
	install = node_install_option(node, node->install_first, "--mode",
				      "bandwidth");
	found(f, "dir", node->bin_dir, "install", install, NULL);
}

const struct check checks_of_plugin[] = {
	{"no-plugin-dir",
	 "{dir}, where the runtime's plugins should be, is missing",
	 "containerd config dump | grep -e conf_dir -e bin_dir", no_dir},
	{"no-plugin",
	 "{file} is missing, so the runtime cannot make any pod's network",
	 "{=install}", missing},
	{"foreign-plugin", "{file} {wrong}",
	 "mv {file} {file}.other && {=install}", foreign},
	{"plugin-mode", "{file} cannot be executed by everybody",
	 "chmod 755 {file}", not_executable},
	{"plugin-writable",
	 "{file}, which runs as root, can be written by others (mode {mode})",
	 "chmod 755 {file}", open_to_all},
	{"plugin-broken", "{file} cannot run on this machine: {why}",
	 "{=install}", no_start},
	{"plugin-version", "{file} is natra {have}, and natractl is {want}",
	 "{=install}", other_version},
	{"bandwidth-back",
	 "{dir}/bandwidth was natra's, and somebody has put the bandwidth plugin back",
	 "{=install}", came_back},
	{0},
};
