/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/text.h"
#include "plugin.h"
#include "state.h"

static int failed(struct install *i, int r, const char *path, const char *what)
{
	return install_fail(i, r, "%s: cannot be %s: %s", path, what,
			    strerror(-r));
}

static int changed(struct install *i, const char *path)
{
	return install_fail(i, -EAGAIN,
			    "%s: somebody has changed it at the same time",
			    path);
}

/* Returns -EAGAIN if the list that the plan was made from has changed since: its owner
 * may rewrite it at any time, and takes no lock. */
static int check_primary(struct install *i, const struct install_plan *plan)
{
	cleanup_text char *path = NULL, *text = NULL;
	cleanup_close int fd = -1;

	if (!plan->primary_file)
		return 0;
	path = text_format("%s/%s", i->net.path, plan->primary_file);
	fd = dir_open_path(i->root_fd, path, O_RDONLY);
	if (fd < 0 || dir_read_fd(fd, &text) < 0 ||
	    strcmp(text, plan->primary_text) != 0)
		return changed(i, path);
	return 0;
}

static int check_before(struct install *i, const struct dir *dir,
			const struct install_change *change)
{
	cleanup_text char *text = NULL;
	int r = dir_read(dir, change->name, &text);

	if (!change->before)
		return r == -ENOENT ? 0 : changed(i, change->path);
	return r == 0 && strcmp(text, change->before) == 0
		       ? 0
		       : changed(i, change->path);
}

/* Opens the subdirectory of a change, and makes it first if a file is to be
 * written to it. */
static int open_subdir(struct install *i, const struct install_change *change,
		       struct dir *ret)
{
	int r;

	if (change->kind == INSTALL_WRITE &&
	    mkdirat(i->net.fd, change->subdir, 0755) < 0 && errno != EEXIST)
		return -errno;
	r = dir_open_below(ret, &i->net, change->subdir);
	if (r == 0 && change->kind == INSTALL_WRITE && fsync(i->net.fd) < 0)
		r = -errno;
	return r;
}

static int write_file(struct install *i, const struct dir *dir,
		      const struct install_change *change)
{
	int r = check_before(i, dir, change);

	if (r < 0)
		return r;
	r = dir_write(dir, change->name, change->after);
	return r < 0 ? failed(i, r, change->path, "written") : 0;
}

static int remove_file(struct install *i, const struct dir *dir,
		       const struct install_change *change)
{
	int r = change->before ? check_before(i, dir, change) : 0;

	if (r < 0)
		return r;
	r = dir_remove(dir, change->name);
	return r < 0 ? failed(i, r, change->path, "removed") : 0;
}

static int apply_in_subdir(struct install *i,
			   const struct install_change *change)
{
	cleanup_dir struct dir dir = DIR_INIT;
	int r = open_subdir(i, change, &dir);

	if (r < 0)
		return failed(i, r, change->path, "reached");
	r = change->kind == INSTALL_WRITE ? write_file(i, &dir, change)
					  : remove_file(i, &dir, change);
	/* This fails, as it should, while somebody else has a file there. If a
	 * write failed, it removes the directory that was made for it. */
	if (change->kind == INSTALL_REMOVE || r < 0)
		(void)unlinkat(i->net.fd, change->subdir, AT_REMOVEDIR);
	return r;
}

/* Installs natra's plugin. If another plugin has the name bandwidth, that one
 * is kept under KEPT_NAME. */
static int copy_plugin(struct install *i, const struct install_change *change)
{
	int r = 0;

	if (strcmp(change->name, BANDWIDTH_NAME) == 0 &&
	    dir_has(&i->bin, change->name) &&
	    !plugin_is_natra(&i->bin, change->name))
		r = dir_keep(&i->bin, change->name, KEPT_NAME);
	if (r == 0)
		r = dir_copy(&i->bin, change->name, i->plugin_fd);
	return r < 0 ? failed(i, r, change->path, "written") : 0;
}

static int restore(struct install *i, const struct install_change *change)
{
	int r = dir_rename(&i->bin, KEPT_NAME, change->name);

	return r < 0 ? failed(i, r, change->path, "brought back") : 0;
}

static int reload(struct install *i)
{
	int r = dir_reload_end(&i->net);

	return r < 0 ? failed(i, r, i->net.path, "marked as changed") : 0;
}

static int apply_one(struct install *i, const struct install_change *change)
{
	const struct dir *dir = change->in_bin_dir ? &i->bin : &i->net;

	switch (change->kind) {
	case INSTALL_COPY:
		return copy_plugin(i, change);
	case INSTALL_RESTORE:
		return restore(i, change);
	case INSTALL_RELOAD:
		return reload(i);
	case INSTALL_WRITE:
	case INSTALL_REMOVE:
		break;
	}
	if (change->subdir)
		return apply_in_subdir(i, change);
	return change->kind == INSTALL_WRITE ? write_file(i, dir, change)
					     : remove_file(i, dir, change);
}

/* Prepares the configuration directory for its first change. */
static int begin_net(struct install *i, const struct install_plan *plan)
{
	int r = check_primary(i, plan);

	if (r < 0)
		return r;
	r = dir_reload_begin(&i->net);
	return r < 0 ? failed(i, r, i->net.path, "changed") : 0;
}

int install_apply(struct install *i, const struct install_plan *plan,
		  size_t *ret_made)
{
	bool begun = false;

	*ret_made = 0;
	if (i->request->removal && plan->changes_len && !i->has_told) {
		i->has_told = true;
		dir_tell_removal(&i->net);
	}
	for (size_t n = 0; n < plan->changes_len; n++) {
		const struct install_change *change = &plan->changes[n];
		int r = 0;

		if (!change->in_bin_dir && !begun) {
			begun = true;
			r = begin_net(i, plan);
		}
		if (r == 0)
			r = apply_one(i, change);
		if (r < 0 && begun)
			(void)dir_reload_end(&i->net);
		if (r < 0)
			return r;
		*ret_made = n + 1;
	}
	return 0;
}
