/* SPDX-License-Identifier: BSD-2-Clause */
/* Begins an installation: finds the platform, opens its directories and locks them. */
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

static int lock_dir(struct install *i, const struct dir *dir)
{
	int r = dir_lock(dir);

	if (r < 0)
		return install_fail(i, r, "%s: %s", dir->path,
				    r == -EBUSY ? "another installer holds it"
						: strerror(-r));
	return 0;
}

static int open_dirs(struct install *i, const struct platform *platform)
{
	const struct install_request *request = i->request;
	int r;

	r = open_dir(i, &i->net,
		     request->net_dir ? request->net_dir : platform->net_dir,
		     "network configuration");
	if (r == 0)
		r = open_dir(i, &i->bin,
			     request->bin_dir ? request->bin_dir
					      : platform->bin_dir,
			     "plugin");
	if (r == 0)
		r = lock_dir(i, &i->net);
	if (r == 0 && !dir_same(&i->net, &i->bin))
		r = lock_dir(i, &i->bin);
	return r;
}

/* Opens the root and finds the platform. */
static int begin(struct install *i, const struct install_request *request,
		 const struct platform **ret_platform)
{
	const char *root = request->root ? request->root : "/";

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
	return 0;
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

int install_open(struct install *i, const struct install_request *request)
{
	const struct platform *platform = NULL;
	int r = begin(i, request, &platform);

	if (r < 0 || !platform)
		return r;
	r = open_dirs(i, platform);
	if (r < 0 || request->removal)
		return r;
	r = find_runtimes(i);
	return r < 0 ? r : plugin_open(i);
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
	look_at_dir(i, &i->net,
		    request->net_dir ? request->net_dir : platform->net_dir);
	look_at_dir(i, &i->bin,
		    request->bin_dir ? request->bin_dir : platform->bin_dir);
	return find_runtimes(i);
}
