/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "util/str.h"

#define FIRST_PAUSE_MS 1U
#define LAST_PAUSE_MS  20U
/* How often the holder is looked for: each new one may have the lock for as long as the
 * last one. */
#define LOOK_MS        250U
/* The longest wait, whoever has the lock meanwhile. */
#define LONGEST_MS     (12 * LOCK_DEADLINE_MS)

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
	const struct timespec pause = {.tv_nsec = (long)(ms * NS_PER_MS)};

	(void)nanosleep(&pause, NULL);
}

/* Reads a line such as "7: FLOCK  ADVISORY  WRITE 1234 00:1f:5678 0 EOF". Returns the
 * process that has the file locked; 0 if the line is about another one. */
static pid_t read_holder(const char *line, const struct stat *st)
{
	/* A lock that a process waits for has an arrow before its kind. */
	const char *at = strstr(line, ": FLOCK ");
	unsigned long major, minor, inode;
	char *end;
	long pid;

	if (!at)
		return 0;
	at += strcspn(at, "0123456789");
	pid = strtol(at, &end, 10);
	major = strtoul(end, &end, 16);
	minor = *end == ':' ? strtoul(end + 1, &end, 16) : 0;
	inode = *end == ':' ? strtoul(end + 1, &end, 10) : 0;
	return inode == st->st_ino && makedev((unsigned int)major,
					      (unsigned int)minor) == st->st_dev
		       ? (pid_t)pid
		       : 0;
}

/* Returns the process that has `fd` locked; 0 or less if there is none, or it cannot be seen
 * from this one's pid namespace. */
static pid_t find_holder(int fd)
{
	cleanup_file FILE *locks = fopen("/proc/locks", "re");
	char line[256];
	struct stat st;
	pid_t pid = 0;

	if (!locks || fstat(fd, &st) < 0)
		return 0;
	while (!pid && fgets(line, sizeof(line), locks))
		pid = read_holder(line, &st);
	return pid;
}

struct waiting {
	unsigned int for_holder_ms; /* since this process has the lock */
	unsigned int in_all_ms;
	uint64_t begin_ns, holder_begin_ns; /* CLOCK_MONOTONIC; 0: not yet */
	pid_t holder; /* as find_holder() returns it; meaningless before the first look */
};

/* Waits a while, and returns whether to try again. */
static bool wait_more(struct waiting *w, int fd, unsigned int ms)
{
	const unsigned int looks = w->in_all_ms / LOOK_MS;
	uint64_t now;

	if (!w->begin_ns)
		w->begin_ns = w->holder_begin_ns = clock_ns(CLOCK_MONOTONIC);
	pause_ms(ms);
	now = clock_ns(CLOCK_MONOTONIC);
	w->in_all_ms = (unsigned int)((now - w->begin_ns) / NS_PER_MS);
	if (w->in_all_ms / LOOK_MS != looks) {
		const pid_t holder = find_holder(fd);

		/* The holder that the first look finds has had the lock since this wait began. */
		if (looks && holder != w->holder)
			w->holder_begin_ns = now;
		w->holder = holder;
	}
	w->for_holder_ms =
		(unsigned int)((now - w->holder_begin_ns) / NS_PER_MS);
	return w->for_holder_ms < LOCK_DEADLINE_MS && w->in_all_ms < LONGEST_MS;
}

/* Locks `fd`, by trying again and again: flock(2) has no timeout, and a library cannot
 * use signals to end it. */
static int take(const struct natra *n, int fd, enum lock_wait wait,
		struct waiting *ret_waiting)
{
	const bool may_cancel = wait == LOCK_BEFORE && n->cancelled_fn;
	unsigned int next_ms = FIRST_PAUSE_MS;
	bool is_last = wait == LOCK_ONCE;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return -errno;
		if (is_last)
			return -EBUSY;
		if (may_cancel && n->cancelled_fn(n->cancelled_arg))
			return -ECANCELED;
		/* The lock may have become free while this process had no CPU. */
		is_last = !wait_more(ret_waiting, fd, next_ms);
		next_ms = next_ms * 2 < LAST_PAUSE_MS ? next_ms * 2
						      : LAST_PAUSE_MS;
	}
	return 0;
}

/* Reads a process's name, which is "?" if it cannot be read. */
static void read_name(pid_t pid, char *ret_name, int size)
{
	char path[32];
	cleanup_file FILE *file = NULL;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(ret_name, size, file))
		(void)snprintf(ret_name, (size_t)size, "?");
	ret_name[strcspn(ret_name, "\n")] = '\0';
	str_one_line(ret_name);
}

/* Names the process that has had the lock for too long. */
static int refuse_busy(struct natra *n, const char *path,
		       const struct waiting *w)
{
	char name[32];

	if (w->holder <= 0)
		return refuse(n, -EBUSY,
			      "another process has had '%s' locked for %u ms",
			      path, w->for_holder_ms);
	read_name(w->holder, name, sizeof(name));
	return refuse(n, -EBUSY,
		      "process %d (%s) has had '%s' locked for %u ms",
		      w->holder, name, path, w->for_holder_ms);
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

void unlock_dir(const int *fd)
{
	if (*fd < 0)
		return;
	(void)flock(*fd, LOCK_UN);
	(void)close(*fd);
}

int lock_dir(struct natra *n, const char *path, enum lock_wait wait,
	     int *ret_fd)
{
	cleanup_lock int fd = open_dir(n, path);
	struct waiting waiting = {0};
	int r;

	if (fd < 0)
		return fd;
	r = take(n, fd, wait, &waiting);
	if (r == -EBUSY)
		return with_code(n, NATRA_CODE_LOCKED,
				 refuse_busy(n, path, &waiting));
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
			return with_code(
				n, NATRA_CODE_LOCKED,
				refuse(n, -EBUSY,
				       "another process has '%s' locked",
				       path));
		if (errno != EINTR)
			return fail_errno(n, -errno, "lock '%s'", path);
	}
	*ret_fd = TAKE_FD(fd);
	return 0;
}
