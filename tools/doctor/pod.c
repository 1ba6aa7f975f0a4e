/* SPDX-License-Identifier: BSD-2-Clause */
#include "pod.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../../src/policy/fields.h"
#include "../common/dir.h"
#include "../common/name.h"
#include "../common/text.h"
#include "../pods/netns.h"
#include "../pods/results.h"
#include "shell.h"

struct search {
	struct pods *pods;
	const struct node *node;
};

const char *pod_title(const struct pod *pod)
{
	if (pod->name[0])
		return pod->name;
	return pod->id;
}

bool pod_is_limited(const struct pod *pod)
{
	return pod->has_info && !pod->info.unshaped &&
	       !pod->info.interface_gone;
}

const char *pod_enter(const struct pod *pod)
{
	return pod->enter ? pod->enter : "";
}

static struct pod *add_pod(struct pods *pods)
{
	struct pod *pod = memory_new(sizeof(*pod));

	pods->items =
		memory_grow(pods->items, (pods->len + 1) * sizeof(void *));
	pods->items[pods->len++] = pod;
	return pod;
}

static void free_pod(struct pod *pod)
{
	if (pod->has_result) {
		wish_free(&pod->wish);
		cached_free(&pod->cached);
	}
	free(pod->netns);
	free(pod->enter);
	free(pod);
}

void pods_free(struct pods *pods)
{
	for (size_t i = 0; i < pods->len; i++)
		free_pod(pods->items[i]);
	for (size_t i = 0; i < pods->unreadable_len; i++) {
		free(pods->unreadable[i].path);
		free(pods->unreadable[i].namespace);
		free(pods->unreadable[i].name);
	}
	free(pods->unreadable);
	free(pods->items);
	*pods = (struct pods){0};
}

static void add_unreadable(struct pods *pods, const char *path,
			   const struct cached *cached)
{
	struct unreadable *one;

	pods->unreadable = memory_grow(pods->unreadable,
				       (pods->unreadable_len + 1) *
					       sizeof(*pods->unreadable));
	one = &pods->unreadable[pods->unreadable_len++];
	one->path = text_copy(path);
	one->namespace = text_copy(cached->pod_namespace);
	one->name = text_copy(cached->pod_name);
}

/* Reads a result of libcni's cache. Those of loopback interfaces are no pod's. */
static int add_result(void *arg, const char *path, const char *text)
{
	const struct search *s = arg;
	enum cached_kind kind;
	struct cached cached;
	struct pod *pod;

	kind = cached_read(text, &cached);
	if (kind == CACHED_UNREADABLE)
		add_unreadable(s->pods, path, &cached);
	if (kind != CACHED_INTERFACE || strcmp(cached.ifname, "lo") == 0) {
		cached_free(&cached);
		return 0;
	}
	pod = add_pod(s->pods);
	pod->has_result = true;
	pod->cached = cached;
	(void)cached_id(&cached, pod->id, sizeof(pod->id));
	cached_pod(&cached, pod->name, sizeof(pod->name));
	if (cached.netns[0])
		pod->netns = text_copy(cached.netns);
	pod->wish_code = wish_look(
		&pod->wish, &pod->cached,
		&(struct wish_source){s->node->element, s->node->namespaces},
		s->node->n, &pod->wish_failure);
	return 0;
}

static int add_info(void *arg, const struct natra_info *info)
{
	const struct search *s = arg;
	struct pod *pod = NULL;

	for (size_t i = 0; i < s->pods->len; i++) {
		if (strcmp(s->pods->items[i]->id, info->id) == 0)
			pod = s->pods->items[i];
	}
	if (!pod)
		pod = add_pod(s->pods);
	pod->has_info = true;
	pod->info = *info;
	(void)snprintf(pod->id, sizeof(pod->id), "%s", info->id);
	if (!pod->name[0])
		(void)snprintf(pod->name, sizeof(pod->name), "%s", info->label);
	return 0;
}

/* Returns whether a path below the root is that of the network namespace with this
 * inode. */
static bool is_netns(int root_fd, const char *path, uint64_t inode)
{
	cleanup_close int fd = netns_open(root_fd, path);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == inode;
}

/* Looks for a network namespace among the files that a directory's entries lead to.
 * The caller frees the path. */
static char *search_netns(int root_fd, const char *path, const char *behind,
			  uint64_t inode)
{
	cleanup_dir struct dir dir = DIR_INIT;
	const struct dirent *entry;
	char *found = NULL;
	DIR *entries;

	if (dir_open(&dir, root_fd, path) < 0)
		return NULL;
	entries = dir_list(&dir);
	while (!found && entries && (entry = readdir(entries))) {
		char *file;

		if (entry->d_name[0] == '.')
			continue;
		file = text_format("%s/%s%s", path, entry->d_name, behind);
		if (is_netns(root_fd, file, inode))
			found = file;
		else
			free(file);
	}
	if (entries)
		(void)closedir(entries);
	return found;
}

static void find_netns(struct pod *pod, int root_fd)
{
	uint64_t inode = pod->info.netns_inode;
	struct stat own;

	if (pod->netns || !pod->has_info || pod->info.interface_gone)
		return;
	/* The interface may be in this process's own namespace. */
	if (stat("/proc/self/ns/net", &own) == 0 && own.st_ino == inode)
		return;
	pod->netns = search_netns(root_fd, "/run/netns", "", inode);
	if (!pod->netns)
		pod->netns = search_netns(root_fd, "/proc", "/ns/net", inode);
	if (!pod->netns)
		pod->netns_error = -ENOENT;
}

int pod_open_netns(const struct pod *pod, const struct node *node)
{
	return pod->netns ? netns_open(node->i->root_fd, pod->netns) : -1;
}

/* Returns whether a path is that of the pod's network namespace. */
static bool is_its_netns(const char *path, const struct pod *pod,
			 const struct node *node)
{
	cleanup_close int fd = pod_open_netns(pod, node);
	struct stat x, y;

	return strchr(path, '/') && fd >= 0 && stat(path, &x) == 0 &&
	       fstat(fd, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* Returns whether `name` stands for this pod. */
static bool is_meant(const struct pod *pod, const char *name,
		     const struct node *node)
{
	const char *container = pod->has_result ? pod->cached.container_id : "";
	const char *slash = pod->netns ? strrchr(pod->netns, '/') : NULL;

	return strcmp(name, pod->id) == 0 || strcmp(name, pod->name) == 0 ||
	       strcmp(name, container) == 0 ||
	       (strlen(name) >= CONTAINER_PREFIX_MIN &&
		strncmp(name, container, strlen(name)) == 0) ||
	       (slash && strcmp(name, slash + 1) == 0) ||
	       is_its_netns(name, pod, node);
}

static void keep_meant(struct pods *pods, const char *name,
		       const struct node *node)
{
	size_t kept = 0;

	for (size_t i = 0; i < pods->len; i++) {
		struct pod *pod = pods->items[i];

		if (is_meant(pod, name, node))
			pods->items[kept++] = pod;
		else
			free_pod(pod);
	}
	pods->len = kept;
}

static void make_enter(struct pod *pod)
{
	struct shell shell = {0};

	if (!pod->netns)
		return;
	shell_text(&shell, "nsenter --net=", strlen("nsenter --net="));
	shell_quoted(&shell, pod->netns);
	shell_text(&shell, " ", 1);
	pod->enter = shell.text;
}

/* Looks whether the interface is the one that the runtime made, as natra-agent does before it
 * limits a pod. */
static void look_for_interface(struct pod *pod, const struct node *node, int fd)
{
	struct pod_interface found;
	int r;

	if (!pod->has_result || pod->wish_code || pod_is_limited(pod) ||
	    fd < 0 || !policy_has_limits(&pod->wish.settings.policy))
		return;
	r = interface_check_netns(&pod->cached, fd, pod->why);
	if (r == 0)
		r = interface_find(node->i->root_fd, &pod->cached, node->n, fd,
				   &found, pod->why);
	if (r != -EBADE && r != -E2BIG)
		pod->why[0] = '\0';
}

static void look_at_links(struct pod *pod, const struct node *node)
{
	const char *ifname =
		pod->has_info ? pod->info.ifname : pod->cached.ifname;
	struct natra_target target = NATRA_INIT(target);
	cleanup_close int fd = pod_open_netns(pod, node);

	pod->left = (struct natra_leftovers)NATRA_INIT(pod->left);
	if (pod->netns && fd < 0)
		pod->netns_error = fd;
	if (pod->netns_error || !ifname || pod->info.interface_gone)
		return;
	look_for_interface(pod, node, fd);
	pod->is_there = link_look(fd, pod->has_info ? pod->info.ifindex : 0,
				  ifname, &pod->inside) == 0;
	target.id = pod->id;
	target.ifname = ifname;
	target.netns_fd = fd > 0 ? fd : 0;
	if (pod->is_there &&
	    natra_find_leftovers(node->n, &target, &pod->left) == 0 &&
	    pod->left.host_ifname[0])
		(void)link_look(-1, 0, pod->left.host_ifname, &pod->outside);
}

static int no_pod(const char *name, char **ret_error)
{
	*ret_error = text_format(
		"POD: '%s' is no attachment, pod, container or network namespace that libcni or natra knows on this node (a pod with hostNetwork has no interface of its own)",
		name);
	return -ENOENT;
}

int pods_look(struct pods *pods, const struct node *node, char **ret_error)
{
	const char *name = node->request->pod;
	struct search search = {pods, node};
	int r = results_foreach(node->i->root_fd, add_result, &search);

	if (r < 0 && r != -ENOENT) {
		*ret_error = text_format("%s: %s", RESULTS_DIR, strerror(-r));
		return r;
	}
	r = natra_foreach_attachment(node->n, add_info, &search);
	/* A check of the node reports missing privileges and a missing bpffs. */
	if (r < 0 && !node->lacks && node->features.bpffs) {
		*ret_error = text_copy(natra_error(node->n));
		return r;
	}
	for (size_t i = 0; i < pods->len; i++)
		find_netns(pods->items[i], node->i->root_fd);
	if (name)
		keep_meant(pods, name, node);
	if (name && !pods->len && !node->lacks)
		return no_pod(name, ret_error);
	for (size_t i = 0; i < pods->len; i++) {
		make_enter(pods->items[i]);
		look_at_links(pods->items[i], node);
	}
	return 0;
}
