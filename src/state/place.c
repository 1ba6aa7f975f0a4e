/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "kernel/netns.h"
#include "util/cleanup.h"

#define DEFAULT_BPFFS  "/sys/fs/bpf"
#define INIT_ROOT      "/proc/1/root"
#define INIT_BPFFS     INIT_ROOT DEFAULT_BPFFS
#define INIT_MNT       "/proc/1/ns/mnt"
#define INIT_MOUNTS    "/proc/1/mountinfo"
#define INIT_USERNS_NO 0xeffffffdU /* the kernel's USER_NS_INIT_INO */
#define MOUNT_OPTIONS  "mode=0700"

static bool is_denied(int r)
{
	return r == -EACCES || r == -EPERM;
}

/* Returns 1 if this process is in the mount namespace of pid 1, 0 if it is in
 * another one. */
static int in_init_mounts(void)
{
	struct stat own, init;

	if (stat("/proc/thread-self/ns/mnt", &own) < 0 ||
	    stat(INIT_MNT, &init) < 0)
		return -errno;
	return own.st_ino == init.st_ino && own.st_dev == init.st_dev;
}

/* Returns whether this process is in a user namespace other than the first. In that of
 * a container the node's bpffs cannot be reached, and is not needed: all BPF objects
 * that can be made there are the container's own. */
static bool in_user_namespace(void)
{
	struct stat st;

	return stat("/proc/thread-self/ns/user", &st) == 0 &&
	       st.st_ino != INIT_USERNS_NO;
}

/* Gets the device number of the bpffs at `path`; returns false if none is
 * mounted there. */
static bool find_bpffs(const char *path, dev_t *ret_dev)
{
	struct statfs fs;
	struct stat st;

	if (statfs(path, &fs) < 0 || fs.f_type != BPF_FS_MAGIC ||
	    stat(path, &st) < 0)
		return false;
	*ret_dev = st.st_dev;
	return true;
}

static bool same_bpffs(const char *a, const char *b)
{
	dev_t a_dev, b_dev;

	return find_bpffs(a, &a_dev) && find_bpffs(b, &b_dev) && a_dev == b_dev;
}

/* The mounts of this mount namespace at /sys/fs/bpf: the mount that the path is in,
 * and the bpffs, if one is mounted there. */
struct own_mount {
	unsigned int mount_id;
	dev_t dev; /* of the bpffs; 0: none is mounted there */
};

static struct own_mount look_at_own(void)
{
	struct own_mount own = {0};
	struct statx st;

	if (statx(AT_FDCWD, DEFAULT_BPFFS, 0, STATX_MNT_ID, &st) == 0 &&
	    (st.stx_mask & STATX_MNT_ID))
		own.mount_id = (unsigned int)st.stx_mnt_id;
	(void)find_bpffs(DEFAULT_BPFFS, &own.dev);
	return own;
}

/* Returns whether a line of mountinfo, "ID PARENT MAJOR:MINOR ROOT POINT ...",
 * is of that very mount, or of the same bpffs at the same path. */
static bool is_same_mount(const char *line, const struct own_mount *own)
{
	const char place[] = " " DEFAULT_BPFFS " ";
	unsigned long mount_id, dev_major, dev_minor;
	const char *point;
	char *end;

	mount_id = strtoul(line, &end, 10);
	(void)strtoul(end, &end, 10);
	dev_major = strtoul(end, &end, 10);
	if (*end != ':')
		return false;
	dev_minor = strtoul(end + 1, &end, 10);
	if (own->mount_id && mount_id == own->mount_id)
		return true;
	point = *end == ' ' ? strchr(end + 1, ' ') : NULL;
	return point && own->dev &&
	       strncmp(point, place, sizeof(place) - 1) == 0 &&
	       makedev((unsigned int)dev_major, (unsigned int)dev_minor) ==
		       own->dev;
}

/* Compares mounts where this process may not look into pid 1's namespaces,
 * which takes CAP_SYS_PTRACE. Returns 1 if pid 1 sees the same at /sys/fs/bpf
 * as this process, 0 if it does not. */
static int is_in_init_mounts(void)
{
	const struct own_mount own = look_at_own();
	FILE *file = fopen(INIT_MOUNTS, "re");
	char *line = NULL;
	size_t size = 0;
	int found = 0;

	if (!file)
		return -errno;
	while (!found && getline(&line, &size, file) >= 0)
		found = is_same_mount(line, &own);
	free(line);
	(void)fclose(file);
	return found;
}

static int choose_denied(struct natra *n, const char **ret_path)
{
	int r = in_user_namespace() ? 1 : is_in_init_mounts();

	if (r < 0)
		return fail_errno(
			n, -EPERM,
			"'" INIT_MOUNTS
			"' does not show whether pid 1 sees the same '" DEFAULT_BPFFS
			"'");
	if (r == 0)
		return fail_errno(
			n, -EPERM,
			"'" DEFAULT_BPFFS
			"' is not the one that pid 1 sees, which cannot be reached");
	*ret_path = DEFAULT_BPFFS;
	return 0;
}

static int choose(struct natra *n, const char **ret_path)
{
	struct stat st;
	int r = in_init_mounts();

	if (is_denied(r))
		return choose_denied(n, ret_path);
	/* Without /proc, or where it hides pid 1, nothing can be compared. */
	if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ESRCH)
		return fail_errno(n, r, "look at the mount namespace of pid 1");
	if (r != 0 || same_bpffs(DEFAULT_BPFFS, INIT_BPFFS)) {
		*ret_path = DEFAULT_BPFFS;
		return 0;
	}
	/* The error is not -ENOENT, which would mean that nothing is
	 * attached. */
	if (stat(INIT_BPFFS, &st) < 0)
		return errno == ENOENT
			       ? refuse(n, -ENOTDIR,
					"pid 1 has no '" DEFAULT_BPFFS
					"' to mount bpffs at")
			       : fail_errno(n, -errno, "'%s'", INIT_BPFFS);
	*ret_path = INIT_BPFFS;
	return 0;
}

int place_find(struct natra *n)
{
	const char *path;
	int r;

	if (n->bpffs)
		return 0;
	r = choose(n, &path);
	if (r < 0)
		return r;
	n->bpffs = strdup(path);
	return n->bpffs ? 0 : fail_errno(n, -ENOMEM, "bpffs '%s'", path);
}

int place_is_mounted(struct natra *n)
{
	struct statfs fs;
	int r = place_find(n);

	if (r < 0)
		return r;
	if (statfs(n->bpffs, &fs) < 0) {
		if (errno == ENOENT)
			return 0;
		return fail_errno(n, -errno, "bpffs '%s'", n->bpffs);
	}
	return fs.f_type == BPF_FS_MAGIC;
}

int place_check(struct natra *n)
{
	cleanup_dir DIR *dir = opendir(n->bpffs);
	const struct dirent *entry;

	if (!dir)
		return fail_errno(n, -errno, "bpffs '%s'", n->bpffs);
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			return refuse(
				n, -ENOTEMPTY,
				"bpffs '%s': is not one, and a mount would hide what is there ('%s')",
				n->bpffs, entry->d_name);
	}
	return 0;
}

/* Mounts bpffs at the directory of the descriptor. Runs on a thread in the
 * mount namespace of pid 1, and with that namespace's root. */
static int mount_here(void *arg)
{
	const int *place_fd = arg;

	/* The descriptor is used and no path, because pid 1 may have another
	 * root than its namespace. */
	if (fchdir(*place_fd) < 0 ||
	    mount("bpf", ".", "bpf", 0, MOUNT_OPTIONS) < 0)
		return -errno;
	return 0;
}

int place_mount(struct natra *n)
{
	cleanup_close int place_fd = -1, mnt_fd = -1;
	int r = place_check(n);

	if (r < 0)
		return r;
	if (strcmp(n->bpffs, INIT_BPFFS) != 0 || in_init_mounts() == 1) {
		if (mount("bpf", n->bpffs, "bpf", 0, MOUNT_OPTIONS) < 0)
			r = -errno;
	} else {
		/* The kernel mounts nothing into another namespace than the
		 * thread's own, so a thread has to enter it. */
		place_fd = open(n->bpffs, O_PATH | O_DIRECTORY | O_CLOEXEC);
		mnt_fd = open(INIT_MNT, O_RDONLY | O_CLOEXEC);
		r = place_fd < 0 || mnt_fd < 0
			    ? -errno
			    : netns_run_in_mounts(mnt_fd, mount_here,
						  &place_fd);
	}
	return r < 0 ? fail_errno(n, r, "mount bpffs at '%s'", n->bpffs) : 0;
}

const char *place_public(const char *path)
{
	const size_t len = sizeof(INIT_ROOT) - 1;

	return strncmp(path, INIT_BPFFS, sizeof(INIT_BPFFS) - 1) == 0
		       ? path + len
		       : path;
}
