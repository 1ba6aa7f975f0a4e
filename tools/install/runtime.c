/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
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
	enum runtime_kind kind;
};

static const struct runtime containerd = {"containerd", 2, 1,
					  RUNTIME_CONTAINERD};
static const struct runtime crio = {"crio", 1, 33, RUNTIME_CRIO};
/* cri-dockerd has libcni 1.1. */
static const struct runtime docker = {"docker", ULONG_MAX, 0, RUNTIME_DOCKER};
static const struct runtime cri_dockerd = {"cri-dockerd", ULONG_MAX, 0,
					   RUNTIME_DOCKER};

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
	{&cri_dockerd, "/usr/bin/cri-dockerd"},
	{&cri_dockerd, "/usr/local/bin/cri-dockerd"},
};

/* Where kubelet's endpoint is, the first that counts first. */
static const char *const kubelet_files[] = {
	"/var/lib/kubelet/kubeadm-flags.env",
	"/etc/default/kubelet",
	"/etc/sysconfig/kubelet",
	"/var/lib/kubelet/instance-config.yaml",
	"/var/lib/kubelet/config.yaml",
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
	runtimes->kinds |= runtime->kind;
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
	static const struct {
		const char *begin;
		const struct runtime *runtime;
	} names[] = {
		{"containerd", &containerd},
		{"cri-dockerd", &cri_dockerd},
		{"cri", &crio},
		{"docker", &docker},
	};

	*ret = (struct runtimes){0};
	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		if (strncmp(text, names[n].begin, strlen(names[n].begin)) == 0)
			return add(ret, names[n].runtime, text);
	}
	return false;
}

bool install_check_runtime_version(const char *text)
{
	struct runtimes runtimes;
	bool good = runtime_parse(text, &runtimes);

	runtime_free(&runtimes);
	return good;
}

/* Returns the kind of runtime that has this socket; 0 if that is not known. */
static unsigned int kind_of_endpoint(const char *text, size_t len)
{
	static const struct {
		const char *part;
		enum runtime_kind kind;
	} parts[] = {
		{"dockerd", RUNTIME_DOCKER},
		{"dockershim", RUNTIME_DOCKER},
		{"crio", RUNTIME_CRIO},
		{"containerd", RUNTIME_CONTAINERD},
	};

	for (size_t n = 0; n < sizeof(parts) / sizeof(parts[0]); n++) {
		if (memmem(text, len, parts[n].part, strlen(parts[n].part)))
			return parts[n].kind;
	}
	return 0;
}

/* Returns the kind of the runtime that kubelet uses; 0 if its files do not say it. */
static unsigned int kind_of_kubelet(int root_fd)
{
	static const char *const keys[] = {"--container-runtime-endpoint",
					   "containerRuntimeEndpoint:"};

	for (size_t n = 0; n < sizeof(kubelet_files) / sizeof(kubelet_files[0]);
	     n++) {
		cleanup_close int fd =
			dir_open_path(root_fd, kubelet_files[n], O_RDONLY);
		cleanup_text char *text = NULL;
		const char *found = NULL;

		if (fd < 0 || dir_read_fd(fd, &text) < 0)
			continue;
		for (size_t k = 0; k < 2 && !found; k++) {
			found = strstr(text, keys[k]);
			found = found ? found + strlen(keys[k]) : NULL;
		}
		if (!found)
			continue;
		found += strspn(found, "= \t\"'");
		return kind_of_endpoint(found, strcspn(found, " \t\n\"'"));
	}
	return 0;
}

void runtime_find(int root_fd, struct runtimes *ret)
{
	static const char *const env[] = {NULL};
	unsigned int kind = kind_of_kubelet(root_fd);

	*ret = (struct runtimes){0};
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const char *argv[] = {programs[i].runtime->name, "--version",
				      NULL};
		cleanup_text char *output = NULL;
		cleanup_close int fd = -1;

		if (kind && programs[i].runtime->kind != kind)
			continue;
		fd = dir_open_path(root_fd, programs[i].path, O_RDONLY);
		if (fd >= 0 &&
		    program_run(fd, root_fd, argv, env, NULL, &output) == 0)
			(void)add(ret, programs[i].runtime, output);
	}
	/* Its version does not matter. */
	if (kind == RUNTIME_DOCKER && !ret->known) {
		ret->known = true;
		ret->text = text_copy("cri-dockerd");
	}
	ret->kinds |= kind;
}

void runtime_free(struct runtimes *runtimes)
{
	free(runtimes->text);
	*runtimes = (struct runtimes){0};
}
