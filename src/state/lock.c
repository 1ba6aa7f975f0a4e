/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#include "util/cleanup.h"

#define FIRST_PAUSE_MS 1U
#define LAST_PAUSE_MS  50U
#define NS_PER_MS      1000000L

/* Returns 1 if `fd` is still what `path` names, 0 if that was removed
 * meanwhile. */
static int is_current(int fd, const char *path)
{
	struct stat by_fd, by_path;

	if (fstat(fd, &by_fd) < 0)
		return -errno;
	if (stat(path, &by_path) < 0)
		return errno == ENOENT ? 0 : -errno;
	return by_fd.st_ino == by_path.st_ino && by_fd.st_dev == by_path.st_dev;
}

static void pause_ms(unsigned int ms)
{
	const struct timespec pause = {.tv_nsec = (long)ms * NS_PER_MS};

	(void)nanosleep(&pause, NULL);
}

/* Returns whether nothing can end the wait, so that the kernel can do it. */
static bool waits_for_ever(const struct natra *n, unsigned int wait_ms)
{
	return wait_ms == LOCK_NO_DEADLINE ||
	       (wait_ms == LOCK_UNTIL_CANCELLED && !n->cancelled_fn);
}

/* Locks `fd` within wait_ms, by trying again and again: flock(2) has no
 * timeout, and a library cannot use signals to end it. */
static int take(const struct natra *n, int fd, unsigned int wait_ms)
{
	const int operation =
		waits_for_ever(n, wait_ms) ? LOCK_EX : LOCK_EX | LOCK_NB;
	unsigned int next_ms = FIRST_PAUSE_MS, waited_ms = 0;

	while (flock(fd, operation) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return -errno;
		if (waited_ms >= wait_ms)
			return -EBUSY;
		if (n->cancelled_fn && n->cancelled_fn(n->cancelled_arg))
			return -ECANCELED;
		pause_ms(next_ms);
		waited_ms += next_ms;
		next_ms = next_ms * 2 < LAST_PAUSE_MS ? next_ms * 2
						      : LAST_PAUSE_MS;
	}
	return 0;
}

/* Returns a descriptor; or -EAGAIN, without an error text, if there is no such
 * directory. */
static int open_dir(struct natra *n, const char *path)
{
	const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	if (errno == ENOENT || errno == ENOTDIR)
		return -EAGAIN;
	return fail_errno(n, -errno, "open '%s'", path);
}

int lock_dir(struct natra *n, const char *path, unsigned int wait_ms,
	     int *ret_fd)
{
	cleanup_close int fd = open_dir(n, path);
	int r;

	if (fd < 0)
		return fd;
	r = take(n, fd, wait_ms);
	if (r == -EBUSY)
		return refuse(n, r,
			      "another process has had '%s' locked for %u ms",
			      path, wait_ms);
	if (r == -ECANCELED)
		return refuse(n, r, "the wait for '%s' was cancelled", path);
	if (r < 0)
		return fail_errno(n, r, "lock '%s'", path);
	r = is_current(fd, path);
	if (r < 0)
		return fail_errno(n, r, "look at '%s'", path);
	if (r == 0)
		return -EAGAIN;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int lock_dir_shared(struct natra *n, const char *path, int *ret_fd)
{
	cleanup_close int fd = open_dir(n, path);

	if (fd < 0)
		return fd;
	while (flock(fd, LOCK_SH | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			return refuse(n, -EBUSY,
				      "another process has '%s' locked", path);
		if (errno != EINTR)
			return fail_errno(n, -errno, "lock '%s'", path);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}
