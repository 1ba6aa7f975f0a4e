/* SPDX-License-Identifier: BSD-2-Clause */
#include "plugin.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/json.h"
#include "../common/keys.h"
#include "../common/program.h"
#include "../common/text.h"

/* The text in the plugin by which it is known: with this it begins what it
 * prints when somebody runs it by hand. */
#define SIGN           "CNI plugin natra "
#define CHUNK          65536
#define PATH_MAX_BYTES 4096

/* The code by which an error object says that the configuration is wrong. */
#define BAD_CONFIG 7

/* Reads up to `size` bytes from an offset, fewer only at the end of the file.
 * Returns their number, or -errno. */
static ssize_t read_at(int fd, char *buffer, size_t size, off_t at)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n =
			pread(fd, buffer + len, size - len, at + (off_t)len);

		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

static bool has_sign(int fd)
{
	const size_t overlap = sizeof(SIGN) - 2;
	char chunk[CHUNK];
	off_t at = 0;

	for (;;) {
		ssize_t n = read_at(fd, chunk, sizeof(chunk), at);

		if (n <= (ssize_t)overlap)
			return false;
		if (memmem(chunk, (size_t)n, SIGN, sizeof(SIGN) - 1))
			return true;
		at += n - (ssize_t)overlap;
	}
}

static int open_regular(const struct dir *dir, const char *name)
{
	struct stat st;
	int fd = openat(dir->fd, name,
			O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)close(fd);
		return -EINVAL;
	}
	return fd;
}

const char *plugin_wrong(const struct dir *dir, const char *name)
{
	cleanup_close int fd = open_regular(dir, name);

	if (fd == -ELOOP)
		return "is a symbolic link";
	return fd >= 0 && has_sign(fd) ? NULL : "is not natra's plugin";
}

bool plugin_is_natra(const struct dir *dir, const char *name)
{
	return !plugin_wrong(dir, name);
}

static bool same_content(int a, int b)
{
	char left[CHUNK], right[CHUNK];
	off_t at = 0;

	for (;;) {
		ssize_t n = read_at(a, left, sizeof(left), at);

		if (n < 0 || read_at(b, right, sizeof(right), at) != n ||
		    memcmp(left, right, (size_t)n) != 0)
			return false;
		if (n == 0)
			return true;
		at += n;
	}
}

int plugin_ask_version(const struct dir *dir, const char *name, char **ret)
{
	cleanup_close int fd = open_regular(dir, name);
	const char *argv[] = {name, NULL}, *env[] = {NULL};
	cleanup_text char *output = NULL;
	const char *sign;
	int r = fd < 0 ? fd : program_run_all(fd, argv, env, &output);

	if (r < 0)
		return r;
	sign = strstr(output, SIGN);
	if (!sign)
		return -EPROTO;
	sign += sizeof(SIGN) - 1;
	*ret = text_part(sign, strcspn(sign, " \n"));
	return 0;
}

bool plugin_is_installed(const struct install *i, const char *name)
{
	cleanup_close int fd = open_regular(&i->bin, name);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0111) == 0111 &&
	       same_content(fd, i->plugin_fd);
}

/* Returns the path of the plugin beside the running program; NULL if that is
 * not known. */
static char *beside(void)
{
	char path[PATH_MAX_BYTES];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (len < 0)
		return NULL;
	path[len] = '\0';
	slash = strrchr(path, '/');
	return slash ? text_format("%.*s/natra", (int)(slash - path), path)
		     : NULL;
}

static int find(struct install *i, char **ret_path)
{
	cleanup_text char *near = beside();

	if (i->request->plugin)
		*ret_path = text_copy(i->request->plugin);
	else if (near && access(near, R_OK) == 0)
		*ret_path = text_copy(near);
	else
		*ret_path = text_copy(NATRA_CNIDIR "/natra");
	i->plugin_fd = open(*ret_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (i->plugin_fd < 0)
		return install_fail(
			i, -errno,
			"plugin '%s': cannot be read: %s; --plugin names another",
			*ret_path, strerror(errno));
	return 0;
}

/* Runs the plugin with one command. Returns its exit code, or -errno. */
static int call(const struct install *i, const char *command, const char *conf,
		char **ret_output)
{
	cleanup_text char *variable = text_format("CNI_COMMAND=%s", command);
	const char *argv[] = {PLUGIN_NAME, NULL};
	const char *env[] = {variable, NULL};

	return program_run(i->plugin_fd, -1, argv, env, conf, ret_output);
}

int plugin_open(struct install *i)
{
	cleanup_text char *path = NULL;
	int r = find(i, &path);

	if (r < 0)
		return r;
	if (!has_sign(i->plugin_fd))
		return install_fail(i, -EINVAL,
				    "plugin '%s': is not natra's CNI plugin",
				    path);
	r = call(i, "VERSION", NULL, &i->plugin_versions);
	if (r != 0)
		return install_fail(
			i, r < 0 ? r : -ENOEXEC,
			"plugin '%s': cannot run on this machine: %s", path,
			r < 0 ? strerror(-r) : "VERSION failed");
	return 0;
}

static bool takes_version(const struct install *i, const char *version)
{
	cleanup_json cJSON *answer = cJSON_Parse(i->plugin_versions);
	const cJSON *item;

	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(
					 answer, "supportedVersions"))
	{
		if (cJSON_IsString(item) &&
		    strcmp(item->valuestring, version) == 0)
			return true;
	}
	return false;
}

/* Looks at the error object that STATUS printed. Returns an error if the
 * configuration is wrong; another reason is noted in i->plugin_status. */
static int judge(struct install *i, const char *output)
{
	cleanup_json cJSON *error = cJSON_Parse(output);
	const cJSON *code = cJSON_GetObjectItemCaseSensitive(error, "code");
	const cJSON *msg = cJSON_GetObjectItemCaseSensitive(error, "msg");

	if (!cJSON_IsNumber(code) || !cJSON_IsString(msg))
		return install_fail(
			i, -EPROTO,
			"the plugin's STATUS failed without a reason");
	if (code->valueint == BAD_CONFIG)
		return install_fail(i, -EINVAL,
				    "the plugin refuses its configuration: %s",
				    msg->valuestring);
	i->plugin_status = text_copy(msg->valuestring);
	return 0;
}

int plugin_check(struct install *i, const char *version, const cJSON *element)
{
	cleanup_json cJSON *conf = cJSON_Duplicate(element, 1);
	cleanup_text char *text = NULL, *output = NULL;
	int r;

	if (!takes_version(i, version))
		return install_fail(
			i, -EOPNOTSUPP,
			"the list's cniVersion '%s' is none that natra takes",
			version);
	cJSON_AddStringToObject(conf, "cniVersion", "1.1.0");
	cJSON_AddStringToObject(conf, "name", "natra-install");
	/* Nothing is logged, since the log is about pods; but if the
	 * configuration names a log file, that is checked. */
	if (!cJSON_GetObjectItem(conf, "logFile"))
		cJSON_AddStringToObject(conf, "logFile", "");
	/* The plugin runs in another root directory than for pods, without the node's copy. */
	cJSON_DeleteItemFromObject(conf, REQUIRE_NAMESPACES);
	text = cJSON_PrintUnformatted(conf);
	free(i->plugin_status);
	i->plugin_status = NULL;
	r = call(i, "STATUS", text, &output);
	if (r < 0)
		return install_fail(i, r, "the plugin's STATUS: %s",
				    strerror(-r));
	return r == 0 ? 0 : judge(i, output);
}
