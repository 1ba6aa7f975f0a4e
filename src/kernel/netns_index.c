/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/netns_index.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"

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
	return -ENOENT; /* netns_foreach_path goes on */
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
		r = netns_foreach_path(add_place, index);
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

int netns_index_open(const struct netns_index *index, const struct netns_id *id)
{
	return is_dead(index, id->cookie)
		       ? -ESRCH
		       : open_first(index, id, netns_open_if);
}

static void note_dead(struct netns_index *index, uint64_t cookie)
{
	uint64_t *dead =
		realloc(index->dead, (index->dead_len + 1) * sizeof(*dead));

	/* Without memory it is not noted, and looked for again next time. */
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
	cleanup_close int fd = open_first(index, id, netns_open_inode);
	struct netns_id found;
	int r;

	/* None of the index's paths leads there any more: their processes have
	 * ended. But a child of theirs, started since, may still live there. */
	if (fd == -ENOENT && first_place(index, id->inode))
		fd = netns_scan(id);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (setns(fd, CLONE_NEWNET) < 0)
		return -errno;
	r = netns_self(fd, &found);
	return r < 0 ? r : found.cookie == id->cookie;
}

/* Returns 1 if the interface of a seat exists, 0 if it is gone. */
static int visit(struct netns_index *index, const struct netns_seat *seat)
{
	char name[IF_NAMESIZE];
	int r = is_own(index, &seat->netns) ? 1 : go_to(index, &seat->netns);

	if (r == 0)
		note_dead(index, seat->netns.cookie);
	if (r != 1)
		return r;
	if (if_indextoname(seat->ifindex, name))
		return 1;
	return errno == ENXIO || errno == ENODEV ? 0 : -errno;
}

struct visits {
	struct netns_index *index;
	struct netns_seat **seats;
	size_t len;
};

static int visit_all(void *arg)
{
	const struct visits *visits = arg;

	/* The thread's own namespace is visited first, since to come back to it
	 * takes CAP_SYS_ADMIN. */
	for (int away = 0; away < 2; away++) {
		for (size_t i = 0; i < visits->len; i++) {
			struct netns_seat *seat = visits->seats[i];

			if (is_own(visits->index, &seat->netns) == !away)
				seat->exists = visit(visits->index, seat);
		}
	}
	return 0;
}

int netns_index_look(struct netns_index *index, struct netns_seat **seats,
		     size_t len)
{
	struct visits visits = {index, seats, len};

	return netns_run_apart(visit_all, &visits);
}
