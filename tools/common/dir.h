/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories that the runtime, its network plugins and natra share. natra's
 * own files in them appear, change and go as a whole. */
#ifndef NATRA_COMMON_DIR_H
#define NATRA_COMMON_DIR_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Names of natra's own files that no runtime reads. Only the holder of the
 * installers' lock makes them, so a file that is there before was left by a
 * killed process. */
#define DIR_TEMPORARY ".natra-install.tmp"
#define DIR_SCRATCH   ".natra-install.reload"
#define DIR_REMOVAL   ".natra-install.removal"

struct dir {
	int fd; /* -1: not open */
	char *path;
};

#define DIR_INIT                                                               \
	{                                                                      \
		.fd = -1                                                       \
	}

void dir_close(struct dir *dir);
#define cleanup_dir __attribute__((cleanup(dir_close)))

/* Both open a path below the directory root_fd; symbolic links stay below it,
 * too. dir_open_path returns a descriptor, or -errno. */
int dir_open_path(int root_fd, const char *path, int flags);
/* Makes the directory at the absolute path, and those above it that are missing. */
int dir_make(int root_fd, const char *path);
int dir_open(struct dir *dir, int root_fd, const char *path);
/* Opens a subdirectory that is natra's own. Returns -ELOOP or -ENOTDIR if it is
 * a symbolic link. */
int dir_open_below(struct dir *dir, const struct dir *parent, const char *name);
bool dir_same(const struct dir *a, const struct dir *b);

/* Reads a whole file; the caller frees the text. Returns -EINVAL if it is not a
 * text. Returns -EFBIG if it is over 16 MiB, with the beginning of the text. */
int dir_read_fd(int fd, char **ret_text);
/* Reads a regular file in the same way. Returns -ELOOP for a symbolic link. */
int dir_read(const struct dir *dir, const char *name, char **ret_text);
/* Reads the beginning of a regular file likewise; what is behind a byte of 0 is no text. */
#define DIR_HEAD_MAX 65536
int dir_read_head(const struct dir *dir, const char *name, char **ret_text);
bool dir_has(const struct dir *dir, const char *name);
bool dir_is_empty(const struct dir *dir);
/* Opens a directory for readdir(), with a descriptor of its own. Returns NULL,
 * and sets errno, on an error. */
DIR *dir_list(const struct dir *dir);

/* These two replace the file `name` in one step, which is on the disk when they
 * return. */
int dir_write(const struct dir *dir, const char *name, const char *text);
int dir_copy(const struct dir *dir, const char *name, int from_fd);
/* Gives a file the second name `to`; what had that name before is lost. A
 * symbolic link is not followed. */
int dir_keep(const struct dir *dir, const char *from, const char *to);
int dir_rename(const struct dir *dir, const char *from, const char *to);
/* Removes a file. Returns 0 also if it is not there. */
int dir_remove(const struct dir *dir, const char *name);

/*
 * Call these before the first change of a directory that a runtime watches, and
 * after the last one, so that the runtime reads it again. containerd looks
 * again when a file is written or removed, but not when one is created or
 * renamed to its name, and never below a subdirectory. A scratch file that is
 * still there says that this has yet to be done.
 */
int dir_reload_begin(const struct dir *dir);
int dir_reload_end(const struct dir *dir);

/* Notifies those who watch the directory by inotify(7) that natra itself begins to
 * remove its files. It does so by a file that exists for this moment only. An agent
 * that keeps natra installed then stops doing so. */
void dir_tell_removal(const struct dir *dir);

#endif
