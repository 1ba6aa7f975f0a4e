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

#define DIRECTORY "/var/lib/natra"
#define NAME      "install.lock"
#define TRIES     100
#define PAUSE_NS  100000000

/* Opens the file and locks it. Returns -EAGAIN while another process holds it, or if that has just
 * removed it, as an uninstallation does with the directory. */
static int try_lock(int root_fd, struct dir *place, int *ret_fd)
{
	cleanup_close int fd = -1;
	int r = dir_make(root_fd, DIRECTORY);
	struct stat st;

	if (r == 0)
		r = dir_open(place, root_fd, DIRECTORY);
	if (r == 0) {
		fd = openat(place->fd, NAME,
			    O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		r = fd < 0 ? -errno : 0;
	}
	if (r == 0 && (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &st) < 0))
		r = -errno;
	if (r == -ENOENT || r == -EINTR || (r == 0 && !st.st_nlink))
		r = -EAGAIN;
	if (r < 0)
		return r;
	*ret_fd = fd;
	fd = -1;
	return 0;
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
				    DIRECTORY "/" NAME);
	return r < 0 ? install_fail(i, r, "%s: %s", DIRECTORY "/" NAME,
				    strerror(-r))
		     : 0;
}

void lock_release(struct install *i)
{
	if (i->lock_fd >= 0)
		(void)unlinkat(i->place.fd, NAME, 0);
	text_closep(&i->lock_fd);
	dir_close(&i->place);
}
