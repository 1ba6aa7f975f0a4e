/* SPDX-License-Identifier: BSD-2-Clause */
/* The lock of those who install on a node. It is a file of natra's own: whoever may read a directory,
 * as a process in a pod may that has the node's /etc, could hold a lock on that for ever. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../common/text.h"
#include "state.h"

#define PARENT    "/var/lib"
#define DIRECTORY "natra"
#define NAME      "install.lock"
#define PATH      PARENT "/" DIRECTORY "/" NAME
#define TRIES     100
#define PAUSE_NS  100000000

/* Returns -EAGAIN if another process has just removed the directory, as an uninstallation does. That
 * leaves those above it alone, so -ENOENT is about a symbolic link to nothing. */
static int open_place(struct dir *ret, int root_fd)
{
	cleanup_dir struct dir parent = DIR_INIT;
	int r = dir_make(root_fd, PARENT "/" DIRECTORY);

	if (r == 0)
		r = dir_open(&parent, root_fd, PARENT);
	if (r < 0)
		return r;
	r = dir_open_below(ret, &parent, DIRECTORY);
	return r == -ENOENT ? -EAGAIN : r;
}

static int lock_file(int fd)
{
	struct stat st;

	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return st.st_nlink ? 0 : -EAGAIN;
}

/* Opens the file and locks it. Returns -EAGAIN while another process holds it, too, or if that has
 * just removed it. */
static int try_lock(int root_fd, struct dir *place, int *ret_fd)
{
	int fd, r = open_place(place, root_fd);

	if (r < 0)
		return r;
	fd = openat(place->fd, NAME,
		    O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == ENOENT || errno == EINTR ? -EAGAIN : -errno;
	r = lock_file(fd);
	if (r < 0)
		(void)close(fd);
	else
		*ret_fd = fd;
	return r;
}

int lock_take(struct install *i)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	int r = -EAGAIN;

	for (int n = 0; n < TRIES && r == -EAGAIN; n++) {
		if (n)
			(void)nanosleep(&pause, NULL);
		dir_close(&i->place);
		r = try_lock(i->root_fd, &i->place, &i->lock_fd);
	}
	/* What fills the disk must not keep natra on it. */
	if ((r == -ENOSPC || r == -EDQUOT) && i->request->removal)
		return 0;
	if (r == -EAGAIN)
		return install_fail(i, -EBUSY, "%s: another installer holds it",
				    PATH);
	if (r == -ENOENT)
		return install_fail(
			i, r,
			"%s: a directory above it is a symbolic link to nothing",
			PATH);
	return r < 0 ? install_fail(i, r, "%s: %s", PATH, strerror(-r)) : 0;
}

void install_unlock(struct install *i)
{
	if (i->lock_fd >= 0)
		(void)unlinkat(i->place.fd, NAME, 0);
	text_closep(&i->lock_fd);
	dir_close(&i->place);
}
