/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins an installation: finds the platform, opens its directories and takes the lock. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "../common/text.h"
#include "platform.h"
#include "plugin.h"
#include "state.h"

static int open_dir(struct install *i, struct dir *dir, const char *path,
		    const char *what)
{
	int r = dir_open(dir, i->root_fd, path);

	if (r < 0)
		return install_fail(i, r, "%s directory '%s': %s", what, path,
				    strerror(-r));
	return 0;
}

/* Returns whether the directory is one of those in which the runtime looks for plugins. */
static bool is_bin_dir(const struct install *i, const struct dir *dir)
{
	for (size_t n = 0; n < i->settings.bin_len; n++) {
		cleanup_dir struct dir other = DIR_INIT;

		if (dir_open(&other, i->root_fd, i->settings.bin_dirs[n]) ==
			    0 &&
		    dir_same(&other, dir))
			return true;
	}
	return false;
}

/* Returns where the lists are. The runtime's own configuration knows it better than a
 * platform that was not asked for by name. */
static const char *find_net(const struct install *i,
			    const struct platform *platform)
{
	if (i->request->net_dir)
		return i->request->net_dir;
	if (!i->request->platform && !platform->multus_dir &&
	    i->settings.net_dir)
		return i->settings.net_dir;
	return platform->net_dir;
}

static const char *find_bin(const struct install *i,
			    const struct platform *platform)
{
	cleanup_dir struct dir usual = DIR_INIT;

	if (i->request->bin_dir)
		return i->request->bin_dir;
	if (i->request->platform || !i->settings.bin_len ||
	    (dir_open(&usual, i->root_fd, platform->bin_dir) == 0 &&
	     is_bin_dir(i, &usual)))
		return platform->bin_dir;
	return i->settings.bin_dirs[0];
}

/* Compares the directories that were opened with what the runtime's configuration says. */
static void compare_dirs(struct install *i, const struct platform *platform)
{
	const struct settings_of_runtime *s = &i->settings;
	cleanup_dir struct dir net = DIR_INIT;

	if (s->bin_len && !is_bin_dir(i, &i->bin))
		i->misplaced = text_format(
			"%s: plugins are looked for in %s, and not in %s (--bin-dir)",
			s->file, s->bin_dirs[0], i->bin.path);
	else if (s->net_dir && !platform->multus_dir &&
		 !(dir_open(&net, i->root_fd, s->net_dir) == 0 &&
		   dir_same(&net, &i->net)))
		i->misplaced = text_format(
			"%s: lists are looked for in %s, and not in %s (--net-dir)",
			s->file, s->net_dir, i->net.path);
}

static int open_dirs(struct install *i, const struct platform *platform)
{
	int r;

	r = open_dir(i, &i->net, find_net(i, platform),
		     "network configuration");
	if (r == 0)
		r = open_dir(i, &i->bin, find_bin(i, platform), "plugin");
	/* Who changes nothing needs no lock. */
	return r == 0 && !i->request->dry_run ? lock_take(i) : r;
}

static int find_runtimes(struct install *i)
{
	const char *version = i->request->runtime_version;

	if (!version)
		runtime_find(i->root_fd, &i->runtimes);
	else if (!runtime_parse(version, &i->runtimes))
		return install_fail(i, -EINVAL,
				    "runtime version '%s': has no version",
				    version);
	return 0;
}

/* Opens the root and finds the platform and what the runtime says. */
static int begin(struct install *i, const struct install_request *request,
		 const struct platform **ret_platform)
{
	const char *root = request->root ? request->root : "/";
	int r;

	i->request = request;
	i->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (i->root_fd < 0)
		return install_fail(i, -errno, "root '%s': %s", root,
				    strerror(errno));
	*ret_platform = request->platform ? platform_find(request->platform)
					  : platform_in_use(i->root_fd);
	if (!*ret_platform)
		return install_fail(i, -EINVAL, "platform '%s': is not known",
				    request->platform);
	if ((*ret_platform)->multus_dir)
		(void)dir_open(&i->multus, i->root_fd,
			       (*ret_platform)->multus_dir);
	r = find_runtimes(i);
	if (r == 0)
		settings_look(i->root_fd, &i->runtimes,
			      (*ret_platform)->containerd, &i->settings);
	return r;
}

int install_open(struct install *i, const struct install_request *request)
{
	const struct platform *platform = NULL;
	int r = begin(i, request, &platform);

	if (r < 0 || !platform)
		return r;
	r = open_dirs(i, platform);
	if (r < 0 || request->removal)
		return r;
	compare_dirs(i, platform);
	/* A caller who names a directory may know more than could be found out. */
	if (i->misplaced && !request->net_dir && !request->bin_dir)
		return install_fail(i, -EINVAL, "%s", i->misplaced);
	return plugin_open(i);
}

/* Opens a directory, or keeps at least its path. */
static void look_at_dir(const struct install *i, struct dir *dir,
			const char *path)
{
	if (dir_open(dir, i->root_fd, path) < 0)
		dir->path = text_copy(path);
}

int install_look(struct install *i, const struct install_request *request)
{
	const struct platform *platform = NULL;
	int r = begin(i, request, &platform);

	if (r < 0 || !platform)
		return r;
	look_at_dir(i, &i->net, find_net(i, platform));
	look_at_dir(i, &i->bin, find_bin(i, platform));
	compare_dirs(i, platform);
	return 0;
}
