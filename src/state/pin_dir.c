/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/pin_dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/netns.h"
#include "state/lock.h"
#include "state/place.h"
#include "util/cleanup.h"
#include "util/str.h"
#include "../../bpf/natra_shared.h"

__extension__ typedef unsigned __int128 u128;

#define ROOT_NAME     "natra"
#define DIR_MODE      0700
#define ID_HEX_LEN    32
#define ENGINE_PREFIX "engine_"
#define ENGINE_ID_LEN 16
#define NETNS_PREFIX  "netns_"
#define EVENTS_PREFIX "events_"
#define GROUPS_PREFIX "groups_"

static int too_long(struct natra *n)
{
	return refuse(n, -ENAMETOOLONG, "bpffs_path: '%s' is too long",
		      n->bpffs);
}

/* The name of the directory is the FNV-1a hash of the id, in 128 bits. */
int pin_dir_path(struct natra *n, const char *id, char *ret_path)
{
	const u128 prime = ((u128)1 << 88) + 0x13b;
	u128 h = ((u128)0x6c62272e07bb0142ULL << 64) | 0x62b821756295c58dULL;
	int r = place_find(n);
	int len;

	if (r < 0)
		return r;
	for (const char *c = id; *c; c++)
		h = (h ^ (unsigned char)*c) * prime;
	len = snprintf(ret_path, PIN_PATH_MAX, "%s/%s/%016llx%016llx", n->bpffs,
		       ROOT_NAME, (unsigned long long)(h >> 64),
		       (unsigned long long)h);
	/* There must be room behind it for "/<generation>/<leg>_link" and
	 * "/<generation>/subnets". */
	if (len + 64 > PIN_PATH_MAX)
		return too_long(n);
	return 0;
}

/* Locking reports the same for what is no directory as for a directory that was
 * removed meanwhile, and the latter is tried again. */
static bool is_no_directory(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* Returns whether a directory that this process has made is still new: another
 * process may have used it between its mkdir and its lock. bpffs counts
 * subdirectories as links, so an empty directory has two. */
static bool is_unused(int dir_fd)
{
	struct stat st;

	return fstat(dir_fd, &st) == 0 && st.st_nlink == 2;
}

static int lock_path(struct natra *n, const char *path, bool create,
		     enum lock_wait wait, struct pin_dir *ret_dir)
{
	bool made;
	int r;

	do {
		made = create && mkdir(path, DIR_MODE) == 0;
		if (create && !made && errno != EEXIST)
			return fail_errno(n, -errno, "create '%s'", path);
		r = lock_dir(n, path, wait, &ret_dir->lock_fd);
		if (r == -EAGAIN && !create)
			return -ENOENT;
		if (r == -EAGAIN && is_no_directory(path))
			return refuse(n, -ENOTDIR, "'%s' is no directory",
				      path);
	} while (r == -EAGAIN);
	if (r < 0) {
		/* After these the directory is in use by the process that
		 * locked it first. */
		if (made && r != -EBUSY && r != -ECANCELED)
			(void)rmdir(path);
		return r;
	}
	(void)str_copy(ret_dir->path, sizeof(ret_dir->path), path);
	ret_dir->is_new = made && is_unused(ret_dir->lock_fd);
	return 0;
}

int pin_dir_make(struct natra *n, const char *path)
{
	if (mkdir(path, DIR_MODE) < 0 && errno != EEXIST)
		return fail_errno(n, -errno, "create '%s'", path);
	return 0;
}

/* Mounts bpffs under a lock, so that only one process does: a second mount
 * would hide what is pinned in the first. */
static int mount_bpffs(struct natra *n)
{
	cleanup_close int fd = -1;
	int r = lock_dir(n, n->bpffs, LOCK_BEFORE, &fd);

	if (r < 0 && r != -EAGAIN)
		return r;
	r = place_is_mounted(n);
	if (r == 0)
		r = place_mount(n);
	return r < 0 ? r : 0;
}

static int make_root(struct natra *n)
{
	char path[PIN_PATH_MAX];
	int r = place_is_mounted(n);

	if (r == 0)
		r = mount_bpffs(n);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/%s", n->bpffs, ROOT_NAME);
	return pin_dir_make(n, path);
}

int pin_dir_lock_id(struct natra *n, const char *id, bool create,
		    struct pin_dir *ret_dir)
{
	char path[PIN_PATH_MAX];
	int r = pin_dir_path(n, id, path);

	if (r == 0 && create)
		r = make_root(n);
	return r < 0 ? r : lock_path(n, path, create, LOCK_BEFORE, ret_dir);
}

int pin_dir_lock(struct natra *n, const char *path, struct pin_dir *ret_dir)
{
	return lock_path(n, path, false, LOCK_AMID, ret_dir);
}

int pin_dir_try_lock(struct natra *n, const char *path, struct pin_dir *ret_dir)
{
	return lock_path(n, path, false, LOCK_ONCE, ret_dir);
}

int pin_dir_share(struct natra *n, const char *path, struct pin_dir *ret_dir)
{
	int r = lock_dir_shared(n, path, &ret_dir->lock_fd);

	if (r == 0)
		(void)str_copy(ret_dir->path, sizeof(ret_dir->path), path);
	return r == -EAGAIN ? -ENOENT : r;
}

/* Writes the path of an engine's directory. It cannot be too long, since it is
 * shorter than the path of an id's directory, which was checked. */
static void engine_path(struct natra *n, uint64_t id, char *ret_path)
{
	(void)snprintf(ret_path, PIN_PATH_MAX,
		       "%s/%s/" ENGINE_PREFIX "%d_%016" PRIx64, n->bpffs,
		       ROOT_NAME, NATRA_PIN_ABI, id);
}

int pin_dir_lock_engine(struct natra *n, uint64_t id, bool create,
			struct pin_dir *ret_dir)
{
	char path[PIN_PATH_MAX];

	engine_path(n, id, path);
	return lock_path(n, path, create, LOCK_AMID, ret_dir);
}

/* Writes the path of a directory of which the node has one for each ABI. */
static int shared_path(struct natra *n, const char *prefix, char *ret_path)
{
	int r = place_find(n);

	if (r < 0)
		return r;
	if (snprintf(ret_path, PIN_PATH_MAX, "%s/" ROOT_NAME "/%s%d", n->bpffs,
		     prefix, NATRA_PIN_ABI) >= PIN_PATH_MAX)
		return too_long(n);
	return 0;
}

int pin_dir_events_path(struct natra *n, char *ret_path)
{
	return shared_path(n, EVENTS_PREFIX, ret_path);
}

int pin_dir_groups_path(struct natra *n, char *ret_path)
{
	return shared_path(n, GROUPS_PREFIX, ret_path);
}

int pin_dir_lock_groups(struct natra *n, bool create, struct pin_dir *ret_dir)
{
	char path[PIN_PATH_MAX];
	int r = pin_dir_groups_path(n, path);

	if (r == 0 && create)
		r = make_root(n);
	return r < 0 ? r : lock_path(n, path, create, LOCK_AMID, ret_dir);
}

int pin_dir_lock_events(struct natra *n, bool create, struct pin_dir *ret_dir)
{
	char path[PIN_PATH_MAX];
	int r = pin_dir_events_path(n, path);

	return r < 0 ? r : lock_path(n, path, create, LOCK_AMID, ret_dir);
}

int pin_dir_lock_netns(struct natra *n, int netns_fd, struct pin_dir *ret_dir)
{
	char path[PIN_PATH_MAX];
	uint64_t inode;
	int r = place_find(n);

	if (r == 0)
		r = netns_inode(n, netns_fd, &inode);
	if (r < 0)
		return r;
	if (snprintf(path, sizeof(path),
		     "%s/" ROOT_NAME "/" NETNS_PREFIX "%" PRIu64, n->bpffs,
		     inode) >= (int)sizeof(path))
		return too_long(n);
	r = make_root(n);
	return r < 0 ? r : lock_path(n, path, true, LOCK_BEFORE, ret_dir);
}

void pin_dir_unlock_netns(struct pin_dir *dir)
{
	/* The directory is removed before it is unlocked: a process that waits
	 * for the lock sees then that it is gone, and makes another one. */
	if (dir->lock_fd >= 0)
		pin_dir_remove(dir);
	pin_dir_unlock(dir);
}

void pin_dir_bank_path(struct natra *n, uint64_t id, uint32_t bank,
		       char *ret_path)
{
	size_t len;

	engine_path(n, id, ret_path);
	len = strlen(ret_path);
	(void)snprintf(ret_path + len, PIN_PATH_MAX - len, "/%u", bank);
}

void pin_dir_unlock(struct pin_dir *dir)
{
	cleanup_closep(&dir->lock_fd);
	dir->lock_fd = -1;
}

void pin_dir_remove(const struct pin_dir *dir)
{
	(void)rmdir(dir->path);
}

/* Returns the ABI in the name of an engine's directory; 0 if it is no such
 * name. */
static uint32_t engine_abi(const char *name)
{
	const size_t prefix = sizeof(ENGINE_PREFIX) - 1;
	unsigned long abi = 2; /* names of ABI 2 have no number */
	const char *id;

	if (strncmp(name, ENGINE_PREFIX, prefix) != 0)
		return 0;
	id = strchr(name + prefix, '_');
	if (id)
		abi = strtoul(name + prefix, NULL, 10);
	id = id ? id + 1 : name + prefix;
	return strlen(id) == ENGINE_ID_LEN && abi <= UINT32_MAX ? (uint32_t)abi
								: 0;
}

uint32_t pin_dir_engine_abi(const char *path)
{
	const char *name = strrchr(path, '/');

	return engine_abi(name ? name + 1 : path);
}

/* The kinds of directories below natra's, by the first part of their names. */
enum dir_kind {
	DIR_ID,
	DIR_ENGINE,
	DIR_NETNS,
	DIR_OTHER,
};

static enum dir_kind kind_of(const char *name)
{
	if (strncmp(name, NETNS_PREFIX, sizeof(NETNS_PREFIX) - 1) == 0)
		return DIR_NETNS;
	if (engine_abi(name))
		return DIR_ENGINE;
	return strlen(name) == ID_HEX_LEN ? DIR_ID : DIR_OTHER;
}

static int foreach_dir(struct natra *n, enum dir_kind kind, pin_dir_fn cb,
		       void *arg)
{
	cleanup_dir DIR *dir = NULL;
	char path[PIN_PATH_MAX];
	struct dirent *entry;
	int r = place_find(n);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/%s", n->bpffs, ROOT_NAME);
	dir = opendir(path);
	if (!dir) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		return fail_errno(n, -errno, "'%s'", path);
	}
	while (r == 0 && (entry = readdir(dir))) {
		if (kind_of(entry->d_name) != kind)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s/%s", n->bpffs,
			     ROOT_NAME, entry->d_name) >= (int)sizeof(path))
			continue;
		r = cb(arg, path);
	}
	return r;
}

int pin_dir_foreach_id(struct natra *n, int (*cb)(void *arg, const char *path),
		       void *arg)
{
	return foreach_dir(n, DIR_ID, cb, arg);
}

int pin_dir_foreach_engine(struct natra *n, pin_dir_fn cb, void *arg)
{
	return foreach_dir(n, DIR_ENGINE, cb, arg);
}

/*
 * Returns 1 for an engine of this ABI. One without a bank was left by a process that
 * could not remove it, unless it is locked. This must not wait for that lock: its owner
 * may wait for what the caller has locked.
 */
static int is_current_engine(void *arg, const char *path)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	int r;

	if (pin_dir_engine_abi(path) != NATRA_PIN_ABI)
		return 0;
	r = pin_dir_try_lock(arg, path, &dir);
	if (r < 0)
		return r != -ENOENT;
	return rmdir(path) < 0 && errno != ENOENT;
}

int pin_dir_find_engine(struct natra *n)
{
	return pin_dir_foreach_engine(n, is_current_engine, n);
}

static int remove_netns_lock(void *arg, const char *path)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	int r = lock_path(arg, path, false, LOCK_ONCE, &dir);

	if (r == 0)
		pin_dir_remove(&dir);
	return r == -ENOENT || r == -EBUSY ? 0 : r;
}

int pin_dir_gc_netns(struct natra *n)
{
	return foreach_dir(n, DIR_NETNS, remove_netns_lock, n);
}
