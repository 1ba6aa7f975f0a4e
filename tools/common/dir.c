/* SPDX-License-Identifier: BSD-2-Clause */
#include "dir.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "text.h"

/* The plugin reads as much. A result has all annotations of a pod, twice. */
#define TEXT_MAX (16 * 1024 * 1024)
#define CHUNK    65536

void dir_close(struct dir *dir)
{
	if (dir->fd >= 0)
		(void)close(dir->fd);
	free(dir->path);
	*dir = (struct dir)DIR_INIT;
}

int dir_open_path(int root_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned int)flags | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT,
	};
	long fd;

	/* Without this flag, opening a FIFO would wait for its other end. */
	if (!(flags & O_PATH))
		how.flags |= O_NONBLOCK;
	fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int dir_make(int root_fd, const char *path)
{
	cleanup_text char *above = text_copy(path);
	int r = 0;

	for (char *slash = above, *next; r == 0 && slash; slash = next) {
		cleanup_close int parent = -1;

		*slash = '\0';
		next = strchr(slash + 1, '/');
		if (next)
			*next = '\0';
		parent = dir_open_path(root_fd, slash == above ? "/" : above,
				       O_PATH | O_DIRECTORY);
		if (parent < 0)
			r = parent;
		else if (mkdirat(parent, slash + 1, 0755) < 0 &&
			 errno != EEXIST)
			r = -errno;
		*slash = '/';
	}
	return r;
}

int dir_open(struct dir *dir, int root_fd, const char *path)
{
	int fd = dir_open_path(root_fd, path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	dir->fd = fd;
	dir->path = text_copy(path);
	return 0;
}

int dir_open_below(struct dir *dir, const struct dir *parent, const char *name)
{
	int fd = openat(parent->fd, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	dir->fd = fd;
	dir->path = text_format("%s/%s", parent->path, name);
	return 0;
}

bool dir_same(const struct dir *a, const struct dir *b)
{
	struct stat x, y;

	return fstat(a->fd, &x) == 0 && fstat(b->fd, &y) == 0 &&
	       x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int dir_read_fd(int fd, char **ret_text)
{
	cleanup_text char *text = NULL;
	size_t len = 0, size = 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	for (;;) {
		ssize_t n;

		if (len == size) {
			size = 2 * size + CHUNK;
			text = memory_grow(text, size);
		}
		n = read(fd, text + len, size - len);
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > TEXT_MAX) {
			*ret_text = text_part(text, CHUNK);
			return -EFBIG;
		}
	}
	if (memchr(text, '\0', len))
		return -EINVAL;
	*ret_text = text_part(text, len);
	return 0;
}

int dir_read(const struct dir *dir, const char *name, char **ret_text)
{
	cleanup_close int fd = openat(
		dir->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : dir_read_fd(fd, ret_text);
}

int dir_read_head(const struct dir *dir, const char *name, char **ret_text)
{
	cleanup_close int fd = openat(
		dir->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char head[DIR_HEAD_MAX];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	n = read(fd, head, sizeof(head));
	if (n < 0)
		return -errno;
	*ret_text = text_part(head, (size_t)n);
	return 0;
}

bool dir_has(const struct dir *dir, const char *name)
{
	struct stat st;

	return fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

DIR *dir_list(const struct dir *dir)
{
	int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	int error = errno;

	if (!entries && fd >= 0)
		(void)close(fd);
	errno = error;
	return entries;
}

bool dir_is_empty(const struct dir *dir)
{
	DIR *entries = dir_list(dir);
	const struct dirent *entry;
	bool empty = entries;

	while (empty && (entry = readdir(entries)))
		empty = strcmp(entry->d_name, ".") == 0 ||
			strcmp(entry->d_name, "..") == 0;
	if (entries)
		(void)closedir(entries);
	return empty;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int copy_all(int fd, int from_fd)
{
	char chunk[CHUNK];
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(from_fd, chunk, sizeof(chunk), at);
		int r;

		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = write_all(fd, chunk, (size_t)n);
		if (r < 0)
			return r;
		at += n;
	}
}

/* Creates the temporary file anew. Returns its descriptor, or -errno. */
static int create_temporary(const struct dir *dir)
{
	int fd;

	(void)unlinkat(dir->fd, DIR_TEMPORARY, 0);
	fd = openat(dir->fd, DIR_TEMPORARY,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

static int sync_dir(const struct dir *dir)
{
	return fsync(dir->fd) < 0 ? -errno : 0;
}

/* Writes the text, or the content of the file from_fd if `text` is NULL. */
static int fill(int fd, const char *text, int from_fd)
{
	int r = text ? write_all(fd, text, strlen(text))
		     : copy_all(fd, from_fd);

	if (r < 0)
		return r;
	/* The mode is set here, so that it does not depend on the umask. */
	if (fchmod(fd, text ? 0600 : 0755) < 0 || fsync(fd) < 0)
		return -errno;
	return 0;
}

static int replace(const struct dir *dir, const char *name, const char *text,
		   int from_fd)
{
	int r, fd = create_temporary(dir);

	if (fd < 0)
		return fd;
	r = fill(fd, text, from_fd);
	if (close(fd) < 0 && r == 0)
		r = -errno;
	if (r == 0)
		r = dir_rename(dir, DIR_TEMPORARY, name);
	if (r < 0)
		(void)unlinkat(dir->fd, DIR_TEMPORARY, 0);
	return r;
}

int dir_write(const struct dir *dir, const char *name, const char *text)
{
	return replace(dir, name, text, -1);
}

int dir_copy(const struct dir *dir, const char *name, int from_fd)
{
	return replace(dir, name, NULL, from_fd);
}

int dir_keep(const struct dir *dir, const char *from, const char *to)
{
	int r;

	/* linkat() does not replace a file, but renameat() does. */
	(void)unlinkat(dir->fd, DIR_TEMPORARY, 0);
	if (linkat(dir->fd, from, dir->fd, DIR_TEMPORARY, 0) < 0)
		return -errno;
	r = dir_rename(dir, DIR_TEMPORARY, to);
	/* renameat() does nothing between two names of the same file, and then
	 * the temporary name is still there. */
	(void)unlinkat(dir->fd, DIR_TEMPORARY, 0);
	return r;
}

int dir_rename(const struct dir *dir, const char *from, const char *to)
{
	if (renameat(dir->fd, from, dir->fd, to) < 0)
		return -errno;
	return sync_dir(dir);
}

int dir_remove(const struct dir *dir, const char *name)
{
	if (unlinkat(dir->fd, name, 0) < 0)
		return errno == ENOENT ? 0 : -errno;
	return sync_dir(dir);
}

/* Returns whether errno says that there was no room for the scratch file. A
 * removal must not fail for that, and needs no scratch file: a watcher is
 * also notified of a removed file. */
static bool needs_room(void)
{
	return errno == ENOSPC || errno == EDQUOT;
}

int dir_reload_begin(const struct dir *dir)
{
	int fd = openat(
		dir->fd, DIR_SCRATCH,
		O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return needs_room() ? 0 : -errno;
	(void)close(fd);
	return 0;
}

int dir_reload_end(const struct dir *dir)
{
	static const char text[] = "natra has changed this directory\n";
	int fd = openat(dir->fd, DIR_SCRATCH,
			O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK |
				O_CLOEXEC,
			0600);

	if (fd < 0)
		return needs_room() ? 0 : -errno;
	/* If there is no room for the text, removing the file is enough. */
	(void)write_all(fd, text, sizeof(text) - 1);
	(void)close(fd);
	return dir_remove(dir, DIR_SCRATCH);
}

void dir_tell_removal(const struct dir *dir)
{
	int fd;

	/* Only a new file is an event of its creation. */
	(void)unlinkat(dir->fd, DIR_REMOVAL, 0);
	fd = openat(dir->fd, DIR_REMOVAL,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	/* A removal must not fail because there is no room. */
	if (fd < 0)
		return;
	(void)close(fd);
	(void)unlinkat(dir->fd, DIR_REMOVAL, 0);
}
