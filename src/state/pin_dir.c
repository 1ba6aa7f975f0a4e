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
#define ABI_PREFIX    "abi"
#define EVENTS_NAME   "events"
#define GROUPS_NAME   "groups"

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
 * would hide what is pinned in the first. The directory below it is sysfs', which any
 * process that sees it can lock for ever: nobody's limits are to wait for that. */
static int mount_bpffs(struct natra *n)
{
	cleanup_lock int fd = -1;
	int r = lock_dir(n, n->bpffs, LOCK_BEFORE, &fd);

	if (r < 0 && r != -EAGAIN && r != -EBUSY)
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
	(void)snprintf(path, sizeof(path), "%s/" ROOT_NAME, n->bpffs);
	r = pin_dir_make(n, path);
	(void)snprintf(path, sizeof(path), "%s/" ROOT_NAME "/" ABI_PREFIX "%d",
		       n->bpffs, NATRA_PIN_ABI);
	return r < 0 ? r : pin_dir_make(n, path);
}

int pin_dir_name_lock(struct natra *n, int r, const char *name)
{
	const enum natra_code code =
		r == -EBUSY ? NATRA_CODE_LOCKED : NATRA_CODE_NONE;

	return r == -EBUSY || r == -ECANCELED
		       ? with_code(n, code,
				   refuse(n, r, "%s: the lock of '%s'",
					  last_error(n), name))
		       : r;
}

int pin_dir_lock_id(struct natra *n, const char *id, bool create,
		    struct pin_dir *ret_dir)
{
	char path[PIN_PATH_MAX];
	int r = pin_dir_path(n, id, path);

	if (r == 0 && create)
		r = make_root(n);
	if (r < 0)
		return r;
	return pin_dir_name_lock(
		n, lock_path(n, path, create, LOCK_BEFORE, ret_dir), id);
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
 * shorter than the path of an id's directory with its room, which was checked. */
static void engine_path(struct natra *n, uint64_t id, char *ret_path)
{
	(void)snprintf(ret_path, PIN_PATH_MAX,
		       "%s/" ROOT_NAME "/" ABI_PREFIX "%d/" ENGINE_PREFIX
		       "%016" PRIx64,
		       n->bpffs, NATRA_PIN_ABI, id);
}

int pin_dir_lock_engine(struct natra *n, uint64_t id, bool create,
			struct pin_dir *ret_dir)
{
	char path[PIN_PATH_MAX];

	engine_path(n, id, path);
	return lock_path(n, path, create, LOCK_AMID, ret_dir);
}

/* Writes the path of a directory of which the node has one for each ABI. */
static int shared_path(struct natra *n, const char *name, char *ret_path)
{
	int r = place_find(n);

	if (r < 0)
		return r;
	if (snprintf(ret_path, PIN_PATH_MAX,
		     "%s/" ROOT_NAME "/" ABI_PREFIX "%d/%s", n->bpffs,
		     NATRA_PIN_ABI, name) >= PIN_PATH_MAX)
		return too_long(n);
	return 0;
}

int pin_dir_events_path(struct natra *n, char *ret_path)
{
	return shared_path(n, EVENTS_NAME, ret_path);
}

int pin_dir_groups_path(struct natra *n, char *ret_path)
{
	return shared_path(n, GROUPS_NAME, ret_path);
}

int pin_dir_lock_groups(struct natra *n, bool create, struct pin_dir *ret_dir)
{
	char path[PIN_PATH_MAX];
	int r = pin_dir_groups_path(n, path);

	if (r == 0 && create)
		r = make_root(n);
	return r < 0 ? r : lock_path(n, path, create, LOCK_AMID, ret_dir);
}

int pin_dir_lock_events(struct natra *n, struct pin_dir *ret_dir)
{
	char path[PIN_PATH_MAX];
	int r = pin_dir_events_path(n, path);

	return r < 0 ? r : lock_path(n, path, true, LOCK_AMID, ret_dir);
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
	unlock_dir(&dir->lock_fd);
	dir->lock_fd = -1;
}

void pin_dir_remove(const struct pin_dir *dir)
{
	(void)rmdir(dir->path);
}

/* Returns the ABI in the name of its directory; 0 if it is no such name. */
static uint32_t abi_of(const char *name)
{
	const size_t prefix = sizeof(ABI_PREFIX) - 1;
	unsigned long abi;
	char *end;

	if (strncmp(name, ABI_PREFIX, prefix) != 0)
		return 0;
	abi = strtoul(name + prefix, &end, 10);
	return *end || abi > UINT32_MAX ? 0 : (uint32_t)abi;
}

/* Writes the path of the directory that a path is in, which is that of an ABI. */
static void abi_path(const char *path, char *ret_path)
{
	(void)str_copy(ret_path, PIN_PATH_MAX, path);
	*strrchr(ret_path, '/') = '\0';
}

uint32_t pin_dir_engine_abi(const char *path)
{
	char dir[PIN_PATH_MAX];

	abi_path(path, dir);
	return abi_of(strrchr(dir, '/') + 1);
}

/* The kinds of directories below natra's, by their names. */
enum dir_kind {
	DIR_ID,
	DIR_NETNS,
	DIR_ABI,
	DIR_ENGINE, /* below that of an ABI */
	DIR_OTHER,
};

static enum dir_kind kind_of(const char *name)
{
	const size_t engine = sizeof(ENGINE_PREFIX) - 1;

	if (strncmp(name, NETNS_PREFIX, sizeof(NETNS_PREFIX) - 1) == 0)
		return DIR_NETNS;
	if (abi_of(name))
		return DIR_ABI;
	if (strncmp(name, ENGINE_PREFIX, engine) == 0 &&
	    strlen(name + engine) == ENGINE_ID_LEN)
		return DIR_ENGINE;
	return strlen(name) == ID_HEX_LEN ? DIR_ID : DIR_OTHER;
}

/* Calls cb for all directories of a kind that are in another one. */
static int foreach_in(struct natra *n, const char *parent, enum dir_kind kind,
		      pin_dir_fn cb, void *arg)
{
	cleanup_dir DIR *dir = opendir(parent);
	char path[PIN_PATH_MAX];
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		if (errno == ENOENT || errno == ENOTDIR)
			return 0;
		return fail_errno(n, -errno, "'%s'", parent);
	}
	while (r == 0 && (entry = readdir(dir))) {
		if (kind_of(entry->d_name) == kind &&
		    snprintf(path, sizeof(path), "%s/%s", parent,
			     entry->d_name) < (int)sizeof(path))
			r = cb(arg, path);
	}
	return r;
}

static int foreach_dir(struct natra *n, enum dir_kind kind, pin_dir_fn cb,
		       void *arg)
{
	char path[PIN_PATH_MAX];
	int r = place_find(n);

	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/" ROOT_NAME, n->bpffs);
	return foreach_in(n, path, kind, cb, arg);
}

int pin_dir_foreach_id(struct natra *n, int (*cb)(void *arg, const char *path),
		       void *arg)
{
	return foreach_dir(n, DIR_ID, cb, arg);
}

struct walk {
	struct natra *n;
	pin_dir_fn cb;
	void *arg;
};

static int walk_engines(void *arg, const char *path)
{
	const struct walk *walk = arg;

	return foreach_in(walk->n, path, DIR_ENGINE, walk->cb, walk->arg);
}

int pin_dir_foreach_engine(struct natra *n, pin_dir_fn cb, void *arg)
{
	struct walk walk = {n, cb, arg};

	return foreach_dir(n, DIR_ABI, walk_engines, &walk);
}

static int walk_events(void *arg, const char *path)
{
	const struct walk *walk = arg;
	char events[PIN_PATH_MAX + sizeof(EVENTS_NAME) + 1];

	(void)snprintf(events, sizeof(events), "%s/" EVENTS_NAME, path);
	return walk->cb(walk->arg, events);
}

int pin_dir_foreach_events(struct natra *n, pin_dir_fn cb, void *arg)
{
	struct walk walk = {n, cb, arg};

	return foreach_dir(n, DIR_ABI, walk_events, &walk);
}

/*
 * An engine without a bank was left by a process that could not remove it, unless it is
 * locked. This must not wait for that lock: its owner may wait for what the caller has
 * locked.
 */
static int is_engine(void *arg, const char *path)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	int r = pin_dir_try_lock(arg, path, &dir);

	if (r < 0)
		return r != -ENOENT;
	return rmdir(path) < 0 && errno != ENOENT;
}

int pin_dir_find_engine(struct natra *n, const char *path)
{
	char dir[PIN_PATH_MAX];

	abi_path(path, dir);
	return foreach_in(n, dir, DIR_ENGINE, is_engine, n);
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
