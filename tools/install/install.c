/* SPDX-License-Identifier: BSD-2-Clause */
#include "install.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "platform.h"
#include "plugin.h"
#include "state.h"
#include "../common/text.h"

struct install *install_new(void)
{
	struct install *i = memory_new(sizeof(*i));

	i->root_fd = -1;
	i->plugin_fd = -1;
	i->net = i->bin = (struct dir)DIR_INIT;
	return i;
}

void install_free(struct install *i)
{
	if (!i)
		return;
	dir_close(&i->net);
	dir_close(&i->bin);
	text_closep(&i->root_fd);
	text_closep(&i->plugin_fd);
	runtime_free(&i->runtimes);
	free(i->plugin_versions);
	free(i->plugin_status);
	free(i->error);
	free(i);
}

const char *install_error(const struct install *i)
{
	return i->error ? i->error : "";
}

int install_fail(struct install *i, int r, const char *format, ...)
{
	va_list args;

	/* The old text is freed at the end, since an argument may be that
	 * text. */
	char *before = i->error;

	va_start(args, format);
	i->error = text_vformat(format, args);
	va_end(args);
	free(before);
	return r;
}

const char *install_net_dir(const struct install *i)
{
	return i->net.path;
}

const char *install_bin_dir(const struct install *i)
{
	return i->bin.path;
}

const char *install_mode_name(enum install_mode mode)
{
	static const char *const names[INSTALL_MODE_MAX] = {
		[INSTALL_AUTO] = "auto",
		[INSTALL_DROPIN] = "dropin",
		[INSTALL_LIST] = "list",
		[INSTALL_BANDWIDTH] = "bandwidth",
		[INSTALL_PRESENT] = "present",
	};

	return names[mode];
}

bool install_mode_parse(const char *text, enum install_mode *ret_mode)
{
	for (int mode = 0; mode < INSTALL_PRESENT; mode++) {
		if (strcmp(text, install_mode_name((enum install_mode)mode)) !=
		    0)
			continue;
		*ret_mode = (enum install_mode)mode;
		return true;
	}
	return false;
}

const char *install_conf_add(cJSON *conf, const char *text)
{
	const char *equals = strchr(text, '=');
	char name[64] = "";
	const char *key;
	cJSON *value;

	if (!equals || equals == text)
		return "is not KEY=VALUE";
	if ((size_t)(equals - text) < sizeof(name))
		memcpy(name, text, (size_t)(equals - text));
	key = install_conf_key(name);
	if (!key)
		return "has no key of natra's configuration, see natra-cni(8)";
	value = cJSON_ParseWithOpts(equals + 1, NULL, true);
	cJSON_DeleteItemFromObject(conf, key);
	cJSON_AddItemToObject(conf, key,
			      value ? value : cJSON_CreateString(equals + 1));
	return NULL;
}

/* Checks a name by the CNI specification's rule. It also keeps out "..", which
 * matters because the name becomes that of a directory. */
const char *install_check_network(const char *name)
{
	if (!isalnum((unsigned char)name[0]))
		return "does not begin with a letter or a digit";
	for (; *name; name++) {
		if (!isalnum((unsigned char)*name) && !strchr("_.-", *name))
			return "has a character other than letters, digits, '_', '.' and '-'";
	}
	return NULL;
}

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
