/* SPDX-License-Identifier: BSD-2-Clause */
/* Directories that the runtime, its network plugins and natra share: natra's own
 * files in them appear, change and go whole. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Names of natra's own that no runtime reads. Only who has the directory's lock
 * makes them, so that one that is there was left by a killed process. */
#define DIR_TEMPORARY ".natra-install.tmp"
#define DIR_SCRATCH   ".natra-install.reload"

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

/* A path below the descriptor of a root: symbolic links stay below it, too. A
 * descriptor, or -errno. */
int dir_open_path(int root_fd, const char *path, int flags);
int dir_open(struct dir *dir, int root_fd, const char *path);
/* One that is natra's own: -ELOOP or -ENOTDIR for a symbolic link. */
int dir_open_below(struct dir *dir, const struct dir *parent, const char *name);
/* -EBUSY: another one has it for 10 s. Let go when the descriptor closes. */
int dir_lock(const struct dir *dir);
bool dir_same(const struct dir *a, const struct dir *b);

/* The caller frees the text. -EINVAL: not a text; -EFBIG: over 1 MiB. */
int dir_read_fd(int fd, char **ret_text);
/* A regular file, not a symbolic link: -ELOOP. */
int dir_read(const struct dir *dir, const char *name, char **ret_text);
bool dir_has(const struct dir *dir, const char *name);
bool dir_is_empty(const struct dir *dir);
/* For readdir(), by a descriptor of its own; NULL with errno set. */
DIR *dir_list(const struct dir *dir);

/* These replace `name` in one step, and are on the disk when they return. */
int dir_write(const struct dir *dir, const char *name, const char *text);
int dir_copy(const struct dir *dir, const char *name, int from_fd);
/* Also of a symbolic link, which is not followed. What `to` was is lost. */
int dir_keep(const struct dir *dir, const char *from, const char *to);
int dir_rename(const struct dir *dir, const char *from, const char *to);
/* 0 if it is not there. */
int dir_remove(const struct dir *dir, const char *name);

/* In front of the first change of a directory that a runtime watches, and behind
 * the last one. containerd looks again when a file is written or removed, but not
 * when one is created or renamed to its name, and never below a subdirectory. A
 * scratch file that is still there tells that this is owed. */
int dir_reload_begin(const struct dir *dir);
int dir_reload_end(const struct dir *dir);
