/* SPDX-License-Identifier: BSD-2-Clause */
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../common/dir.h"
#include "../common/text.h"

/* Opens a link in /proc, of which only the directory is below the root. */
static int open_link(int root_fd, const char *path)
{
	const char *slash = strrchr(path, '/');
	cleanup_text char *parent = NULL;
	cleanup_close int dir_fd = -1;
	struct statfs fs;
	int fd;

	if (!slash)
		return -EXDEV;
	parent = text_part(path, (size_t)(slash - path + 1));
	dir_fd = dir_open_path(root_fd, parent, O_PATH | O_DIRECTORY);
	if (dir_fd < 0)
		return dir_fd;
	fd = openat(dir_fd, slash + 1, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Other links in /proc lead to any file. */
	if (fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC)
		return fd;
	(void)close(fd);
	return -EXDEV;
}

int netns_open(int root_fd, const char *path)
{
	int fd = dir_open_path(root_fd, path, O_RDONLY);

	return fd == -EXDEV ? open_link(root_fd, path) : fd;
}
