/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/netns_find.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/cleanup.h"

/* Returns whether an error means that a process has ended while it was looked
 * at, or is hidden from us, which is no failure; neither is a path that leads to no
 * namespace, but to itself or to a socket. */
static bool is_absent(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ESRCH ||
	       error == EACCES || error == EPERM || error == ELOOP ||
	       error == ENXIO;
}

/* Opens the namespace at `path` and returns its descriptor if it has the inode
 * number of `id`, else -ENOENT. */
static int open_inode(const char *path, const struct netns_id *id)
{
	cleanup_close int fd = -1;
	struct stat st;
	int r;

	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return is_absent(errno) ? -ENOENT : -errno;
	r = netns_check(fd);
	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r < 0)
		return r == -EINVAL ? -ENOENT : r;
	return st.st_ino == id->inode ? TAKE_FD(fd) : -ENOENT;
}

/* Does the same if the namespace also has the cookie of `id`. */
static int open_if(const char *path, const struct netns_id *id)
{
	cleanup_close int fd = open_inode(path, id);
	int r;

	if (fd < 0)
		return fd;
	r = netns_is(fd, id);
	if (r < 0)
		return r;
	return r ? TAKE_FD(fd) : -ENOENT;
}

static int scan(const char *dir_path, const char *suffix, bool only_digits,
		int (*cb)(void *arg, const char *path, uint64_t inode),
		void *arg)
{
	cleanup_dir DIR *dir = opendir(dir_path);
	struct dirent *entry;
	char path[320];
	struct stat st;
	int r;

	if (!dir)
		return is_absent(errno) ? -ENOENT : -errno;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' ||
		    (only_digits &&
		     (entry->d_name[0] < '0' || entry->d_name[0] > '9')))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s%s", dir_path,
			     entry->d_name, suffix) >= (int)sizeof(path))
			continue;
		if (stat(path, &st) < 0) {
			if (is_absent(errno))
				continue;
			return -errno;
		}
		r = cb(arg, path, st.st_ino);
		if (r != -ENOENT)
			return r;
	}
	return -ENOENT;
}

/* Calls cb for each namespace in /run/netns, then for those of all processes,
 * as long as cb returns -ENOENT. Returns what cb returned last. */
static int foreach_path(int (*cb)(void *arg, const char *path, uint64_t inode),
			void *arg)
{
	int r = scan(NETNS_NAMED_DIR, "", false, cb, arg);

	return r == -ENOENT ? scan("/proc", "/ns/net", true, cb, arg) : r;
}

static int open_match(void *arg, const char *path, uint64_t inode)
{
	const struct netns_id *id = arg;

	return inode == id->inode ? open_if(path, id) : -ENOENT;
}

/* Opens a namespace by trying, once, all paths that lead to any namespace now. Returns
 * -ENOENT if none leads to this one. */
static int scan_all(const struct netns_id *id)
{
	struct netns_id wanted = *id;

	return foreach_path(open_match, &wanted);
}

/* One namespace, and one of the paths that lead to it. */
struct place {
	uint64_t inode;
	char *path;
};

struct netns_index {
	struct place *places; /* sorted by inode */
	size_t len;
	size_t room;
	struct netns_id own; /* the caller's own, which /proc may hide */
	/* Cookies of the namespaces that are gone. The kernel never uses one
	 * again. */
	uint64_t *dead;
	size_t dead_len;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->inode > y->inode) - (x->inode < y->inode);
}

static int add_place(void *arg, const char *path, uint64_t inode)
{
	struct netns_index *index = arg;
	struct place *place;

	if (index->len == index->room) {
		size_t room = index->room ? index->room * 2 : 64;
		struct place *places =
			realloc(index->places, room * sizeof(*places));

		if (!places)
			return -ENOMEM;
		index->places = places;
		index->room = room;
	}
	place = &index->places[index->len];
	place->inode = inode;
	place->path = strdup(path);
	if (!place->path)
		return -ENOMEM;
	index->len++;
	return -ENOENT; /* foreach_path goes on */
}

int netns_index_make(struct netns_index **ret_index)
{
	cleanup_netns_index struct netns_index *index =
		calloc(1, sizeof(*index));
	int r;

	if (!index)
		return -ENOMEM;
	r = netns_self(-1, &index->own);
	if (r == 0)
		r = foreach_path(add_place, index);
	if (r != -ENOENT)
		return r;
	if (index->len)
		qsort(index->places, index->len, sizeof(index->places[0]),
		      compare_places);
	*ret_index = TAKE_PTR(index);
	return 0;
}

void netns_index_free(struct netns_index **index)
{
	if (!*index)
		return;
	for (size_t i = 0; i < (*index)->len; i++)
		free((*index)->places[i].path);
	free((*index)->places);
	free((*index)->dead);
	free(*index);
	*index = NULL;
}

/* Returns the first place with that inode number, or NULL. */
static const struct place *first_place(const struct netns_index *index,
				       uint64_t inode)
{
	size_t low = 0, high = index->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (index->places[middle].inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return low < index->len && index->places[low].inode == inode
		       ? &index->places[low]
		       : NULL;
}

static int
open_first(const struct netns_index *index, const struct netns_id *id,
	   int (*open_fn)(const char *path, const struct netns_id *id))
{
	const struct place *place = first_place(index, id->inode);
	const struct place *end = index->places + index->len;
	int r = -ENOENT;

	/* If the process of the first path has ended, another path may still
	 * lead to the namespace. */
	for (;
	     r == -ENOENT && place && place < end && place->inode == id->inode;
	     place++)
		r = open_fn(place->path, id);
	return r;
}

static bool is_dead(const struct netns_index *index, uint64_t cookie)
{
	for (size_t i = 0; i < index->dead_len; i++) {
		if (index->dead[i] == cookie)
			return true;
	}
	return false;
}

/* Opens a namespace. Returns -ENOENT if it is not in the index, but may be
 * found elsewhere, and -ESRCH if it is gone. */
static int open_indexed(const struct netns_index *index,
			const struct netns_id *id)
{
	return is_dead(index, id->cookie) ? -ESRCH
					  : open_first(index, id, open_if);
}

static void note_dead(struct netns_index *index, uint64_t cookie)
{
	uint64_t *dead =
		realloc(index->dead, (index->dead_len + 1) * sizeof(*dead));

	/* Without memory the namespace is not noted, and is looked for again
	 * next time. */
	if (!dead)
		return;
	index->dead = dead;
	index->dead[index->dead_len++] = cookie;
}

static bool is_own(const struct netns_index *index, const struct netns_id *id)
{
	return id->inode == index->own.inode && id->cookie == index->own.cookie;
}

/* Moves the calling thread, which serves nothing else, into a namespace.
 * Returns 1 if it is there now, 0 if the namespace is gone. */
static int go_to(const struct netns_index *index, const struct netns_id *id)
{
	cleanup_close int fd = open_first(index, id, open_inode);
	struct netns_id found;
	int r;

	/* None of the index's paths leads there any more: their processes have
	 * ended, but a child of theirs, started since, may still run there. */
	if (fd == -ENOENT && first_place(index, id->inode))
		fd = scan_all(id);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (setns(fd, CLONE_NEWNET) < 0)
		return -errno;
	r = netns_self(fd, &found);
	return r < 0 ? r : found.cookie == id->cookie;
}

/* Returns 1 if the interface exists, 0 if it is gone. */
static int visit(struct netns_index *index, const struct netns_lookup *lookup)
{
	int r = is_own(index, &lookup->netns) ? 1
					      : go_to(index, &lookup->netns);

	if (r == 0)
		note_dead(index, lookup->netns.cookie);
	return r == 1 ? netns_has_link(lookup->ifindex) : r;
}

struct visits {
	struct netns_index *index;
	struct netns_lookup **lookups;
	size_t len;
};

static int visit_all(void *arg)
{
	const struct visits *visits = arg;

	/* The thread's own namespace is visited first, since to come back to it
	 * takes CAP_SYS_ADMIN. */
	for (int away = 0; away < 2; away++) {
		for (size_t i = 0; i < visits->len; i++) {
			struct netns_lookup *lookup = visits->lookups[i];

			if (is_own(visits->index, &lookup->netns) == !away)
				lookup->exists = visit(visits->index, lookup);
		}
	}
	return 0;
}

int netns_index_look(struct netns_index *index, struct netns_lookup **lookups,
		     size_t len)
{
	struct visits visits = {index, lookups, len};

	return netns_run_apart(visit_all, &visits);
}

static int find_elsewhere(const struct natra *n, const struct netns_id *id)
{
	int r = n->netns_index ? open_indexed(n->netns_index, id) : -ENOENT;

	if (r == -ESRCH)
		return -ENOENT;
	return r == -ENOENT ? scan_all(id) : r;
}

int netns_find(const struct natra *n, const struct netns_id *id, int hint_fd,
	       int *ret_fd)
{
	struct netns_id self = {0};
	int r = netns_self(-1, &self);

	if (r < 0)
		return r;
	if (self.inode == id->inode && self.cookie == id->cookie) {
		*ret_fd = -1;
		return 0;
	}
	r = hint_fd >= 0 ? netns_is(hint_fd, id) : 0;
	if (r < 0)
		return r;
	if (r == 1) {
		r = fcntl(hint_fd, F_DUPFD_CLOEXEC, 3);
		if (r < 0)
			return -errno;
		*ret_fd = r;
		return 0;
	}
	r = find_elsewhere(n, id);
	if (r < 0)
		return r;
	*ret_fd = r;
	return 0;
}
