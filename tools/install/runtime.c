/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime.h"

#include <ctype.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../common/dir.h"
#include "../common/program.h"
#include "../common/text.h"
#include "install.h"

/* A container runtime, and its first version that has libcni 1.3.0, which is
 * the first libcni that reads drop-ins. */
struct runtime {
	const char *name;
	unsigned long major, minor; /* of that first version */
};

static const struct runtime containerd = {"containerd", 2, 1};
static const struct runtime crio = {"crio", 1, 33};

static const struct {
	const struct runtime *runtime;
	const char *path;
} programs[] = {
	{&containerd, "/usr/bin/containerd"},
	{&containerd, "/usr/local/bin/containerd"},
	{&containerd, "/bin/containerd"},
	{&containerd, "/opt/bin/containerd"},
	{&containerd, "/home/containerd/usr/local/bin/containerd"},
	{&containerd, "/var/lib/rancher/k3s/data/current/bin/containerd"},
	{&containerd, "/var/lib/rancher/rke2/bin/containerd"},
	{&containerd, "/snap/microk8s/current/bin/containerd"},
	{&crio, "/usr/bin/crio"},
	{&crio, "/usr/local/bin/crio"},
	{&crio, "/opt/bin/crio"},
};

/* Finds the first word that begins like a version. containerd's output has a
 * module path with "/v2" in front of it, which is none. Returns where the
 * version's digits begin; NULL if there is none. */
static const char *find_version(const char *text, unsigned long *ret_major,
				unsigned long *ret_minor)
{
	for (const char *word = text; *word; word++) {
		const char *s = word + (*word == 'v');
		char *end;

		if (word != text && !strchr(" \t\n:/", word[-1]))
			continue;
		if (!isdigit((unsigned char)*s))
			continue;
		*ret_major = strtoul(s, &end, 10);
		if (*end != '.' || !isdigit((unsigned char)end[1]))
			continue;
		*ret_minor = strtoul(end + 1, NULL, 10);
		return s;
	}
	return NULL;
}

static bool add(struct runtimes *runtimes, const struct runtime *runtime,
		const char *text)
{
	cleanup_text char *found = NULL;
	unsigned long major, minor;
	const char *version = find_version(text, &major, &minor);
	bool reads;
	char *all;

	if (!version)
		return false;
	reads = major > runtime->major ||
		(major == runtime->major && minor >= runtime->minor);
	/* The text behind the digits is left out: it is about how the runtime was
	 * built. */
	found = text_format("%s %.*s", runtime->name,
			    (int)strspn(version, "0123456789."), version);
	runtimes->read_dropins =
		reads && (!runtimes->known || runtimes->read_dropins);
	runtimes->known = true;
	/* /bin and /usr/bin are often the same, so a runtime may be found
	 * twice. */
	if (runtimes->text && strstr(runtimes->text, found))
		return true;
	all = runtimes->text ? text_format("%s and %s", runtimes->text, found)
			     : text_copy(found);
	free(runtimes->text);
	runtimes->text = all;
	return true;
}

bool runtime_parse(const char *text, struct runtimes *ret)
{
	bool is_crio = strncmp(text, "cri", 3) == 0;

	*ret = (struct runtimes){0};
	if (!is_crio && strncmp(text, "containerd", 10) != 0)
		return false;
	return add(ret, is_crio ? &crio : &containerd, text);
}

bool install_check_runtime_version(const char *text)
{
	struct runtimes runtimes;
	bool good = runtime_parse(text, &runtimes);

	runtime_free(&runtimes);
	return good;
}

void runtime_find(int root_fd, struct runtimes *ret)
{
	static const char *const env[] = {NULL};

	*ret = (struct runtimes){0};
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const char *argv[] = {programs[i].runtime->name, "--version",
				      NULL};
		cleanup_text char *output = NULL;
		cleanup_close int fd =
			dir_open_path(root_fd, programs[i].path, O_RDONLY);

		if (fd >= 0 &&
		    program_run(fd, root_fd, argv, env, NULL, &output) == 0)
			(void)add(ret, programs[i].runtime, output);
	}
}

void runtime_free(struct runtimes *runtimes)
{
	free(runtimes->text);
	*runtimes = (struct runtimes){0};
}
