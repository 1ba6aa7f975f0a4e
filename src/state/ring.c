/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/ring.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/libbpf_log.h"
#include "state/pin.h"
#include "util/cleanup.h"

static const char ring_name[] = "ring";

int ring_make(struct natra *n)
{
	const struct bpf_map_create_opts opts = {
		.sz = sizeof(opts),
		.map_flags = BPF_F_MMAPABLE,
	};
	LIBBPF_LOG_SCOPE(n);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "natra_events",
				sizeof(uint32_t),
				sizeof(struct natra_event_ring), 1, &opts);

	return fd < 0 ? fail_errno(n, fd, "create the ring of events") : fd;
}

static int open_ring(struct natra *n, const char *dir, int *ret_fd)
{
	static const struct pin_map ring_map = {
		.type = BPF_MAP_TYPE_ARRAY,
		.value_size = sizeof(struct natra_event_ring),
		.entries = 1,
		.flags = BPF_F_MMAPABLE,
	};
	cleanup_close int fd = -1;
	int r = pin_open_object(n, dir, ring_name, &fd);

	if (r == 0)
		r = pin_check_map(n, dir, ring_name, fd, &ring_map, NULL);
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

static int enter(struct natra *n, int *ret_fd)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_close int fd = -1;
	int r = pin_dir_lock_events(n, &dir);

	if (r < 0)
		return r;
	r = open_ring(n, dir.path, &fd);
	if (r == -ENOENT) {
		fd = ring_make(n);
		r = fd < 0 ? fd : pin_object(n, dir.path, ring_name, fd);
		if (r < 0)
			pin_dir_remove(&dir); /* refused if it has a ring */
	}
	if (r == 0)
		*ret_fd = TAKE_FD(fd);
	return r;
}

int ring_enter(struct natra *n)
{
	KEEP_ERROR_SCOPE(n);
	int fd = -1;

	if (enter(n, &fd) < 0) {
		log_line(n, NATRA_LOG_WARN, "there are no events: %s",
			 last_error(n));
		return -1;
	}
	return fd;
}

/*
 * A process of any ABI that loads a program makes and locks its engine's directory before
 * it asks for the ring. If no engine is found here, such a process comes later, waits
 * for the lock on the ring's directory, and then finds it gone and makes another.
 */
static int sweep(void *arg, const char *path)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	struct natra *n = arg;
	int r = pin_dir_lock(n, path, &dir);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = pin_dir_find_engine(n, path);
	if (r != 0)
		return r < 0 ? r : 0;
	return pin_remove_all(n, dir.path);
}

void ring_sweep(struct natra *n)
{
	KEEP_ERROR_SCOPE(n);

	if (pin_dir_foreach_events(n, sweep, n) < 0)
		log_line(n, NATRA_LOG_WARN, "the ring of events stays: %s",
			 last_error(n));
}

/* Returns -ENOENT, without an error text, if there is no ring. */
static int find_inode(struct natra *n, const char *dir,
		      unsigned long *ret_inode)
{
	char path[PIN_PATH_MAX + 32];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, ring_name);
	if (stat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? -ENOENT
			       : fail_errno(n, -errno, "'%s'", path);
	*ret_inode = st.st_ino;
	return 0;
}

int ring_open(struct natra *n, struct ring_view *ret_view)
{
	struct ring_view view = {0};
	char dir[PIN_PATH_MAX];
	cleanup_close int fd = -1;
	void *map;
	int r = pin_dir_events_path(n, dir);

	if (r < 0)
		return r;
	/* The inode is read first: if the ring is replaced before it is opened,
	 * ring_is_replaced() reports that once more than needed, and not too seldom. */
	r = find_inode(n, dir, &view.inode);
	if (r == 0)
		r = open_ring(n, dir, &fd);
	if (r < 0)
		return r;
	map = mmap(NULL, sizeof(*view.map), PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return fail_errno(n, -errno, "map the ring of events");
	view.map = map;
	view.place = __atomic_load_n(&view.map->head, __ATOMIC_ACQUIRE);
	view.place -= view.place < NATRA_EVENTS ? view.place : NATRA_EVENTS;
	*ret_view = view;
	return 0;
}

void ring_close(struct ring_view *view)
{
	if (view->map)
		(void)munmap((void *)view->map, sizeof(*view->map));
	*view = (struct ring_view){0};
}

int ring_is_replaced(struct natra *n, const struct ring_view *view)
{
	char dir[PIN_PATH_MAX];
	unsigned long inode;
	int r = pin_dir_events_path(n, dir);

	if (r == 0)
		r = find_inode(n, dir, &inode);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return inode != view->inode;
}

static uint32_t number_of(const struct natra_event_entry *entry)
{
	return __atomic_load_n(&entry->number, __ATOMIC_ACQUIRE);
}

int ring_read(struct ring_view *view, struct natra_event_entry *ret_event,
	      uint64_t *lost)
{
	const uint64_t head =
		__atomic_load_n(&view->map->head, __ATOMIC_ACQUIRE);

	if (head - view->place > NATRA_EVENTS) {
		*lost += head - NATRA_EVENTS - view->place;
		view->place = head - NATRA_EVENTS;
	}
	for (; view->place < head; view->place++) {
		const uint32_t number = (uint32_t)view->place + 1;
		const struct natra_event_entry *entry =
			&view->map->entries[view->place % NATRA_EVENTS];
		const uint32_t before = number_of(entry);

		/* It is not written yet: the place was taken a moment ago. */
		if ((int32_t)(before - number) < 0)
			return 0;
		*ret_event = *entry;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (before == number && number_of(entry) == number) {
			view->place++;
			return 1;
		}
		++*lost; /* A newer one is there, or being written. */
	}
	return 0;
}
