/* SPDX-License-Identifier: BSD-2-Clause */
#include "pinwatch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define BPFFS     "/sys/fs/bpf"
#define PINS      "natra"
#define INIT_ROOT "/proc/1/root"
/* The kernel reports an exceptional condition of this file when a mount comes or goes. */
#define MOUNTS    "/proc/1/mountinfo"

static void close_file(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* Returns a descriptor of the bpffs that the library takes, or -1 if there is none. */
static int open_bpffs(const struct pinwatch *p)
{
	const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
	struct statfs fs;
	int fd = open(p->bpffs ? p->bpffs : INIT_ROOT BPFFS, flags);

	/* Only the owner of pid 1 and who may trace it can look into its root. */
	if (fd < 0 && !p->bpffs)
		fd = open(BPFFS, flags);
	if (fd >= 0 && (fstatfs(fd, &fs) < 0 || fs.f_type != BPF_FS_MAGIC))
		close_file(&fd);
	return fd;
}

/* Returns the device of a file system, or 0 if there is none. */
static dev_t device(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_dev : 0;
}

static void mounts_changed(void *arg, uint32_t events)
{
	struct pinwatch *p = arg;
	const dev_t kept = device(p->kept_fd);
	bool is_known = p->seen != kept;
	int fd = open_bpffs(p);
	dev_t now = device(fd);

	(void)events;
	close_file(&fd);
	/* Most mounts are of others. */
	if (!kept || now == p->seen)
		return;
	p->seen = now;
	if (now == kept)
		return;
	if (!is_known)
		log_write(
			p->log, NATRA_LOG_WARN,
			"bpffs was unmounted or mounted over: the limits hold,"
			" and running pods get them anew");
	p->lost(p->arg);
}

static void removed(void *arg, uint32_t events)
{
	struct pinwatch *p = arg;
	union {
		struct inotify_event event;
		char bytes[4096];
	} buffer;
	const ssize_t size = read(p->removal.fd, &buffer, sizeof(buffer));
	const struct inotify_event *event;
	bool is_removed = false;

	(void)events;
	for (ssize_t at = 0; at < size;
	     at += (ssize_t)(sizeof(*event) + event->len)) {
		event = (const void *)(buffer.bytes + at);
		is_removed |= event->len && strcmp(event->name, PINS) == 0;
	}
	if (!is_removed)
		return;
	log_write(p->log, NATRA_LOG_WARN,
		  "natra's directory on bpffs was removed: running pods get"
		  " their limits anew");
	p->lost(p->arg);
}

/* Watches the root of bpffs and not natra's directory: that is not there before the first pod
 * has limits, and may be removed again before it is watched. */
static void watch_directory(const struct pinwatch *p, int bpffs_fd)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", bpffs_fd);
	/* Without this the pods are looked at now and then only. */
	if (bpffs_fd >= 0 && p->removal.fd >= 0)
		(void)inotify_add_watch(p->removal.fd, path,
					IN_DELETE | IN_MOVED_FROM | IN_ONLYDIR);
}

void pinwatch_begin(struct pinwatch *p)
{
	close_file(&p->next_fd);
	p->next_fd = open_bpffs(p);
	/* One pod may go on failing, for which the bpffs before is kept. */
	watch_directory(p, p->next_fd);
}

bool pinwatch_before(const struct pinwatch *p, char *ret_path, size_t size)
{
	(void)snprintf(ret_path, size, "/proc/self/fd/%d", p->kept_fd);
	return p->kept_fd >= 0 && p->next_fd >= 0 &&
	       device(p->kept_fd) != device(p->next_fd);
}

void pinwatch_end(struct pinwatch *p, bool are_limited)
{
	int fd = open_bpffs(p);

	if (are_limited && fd >= 0 && device(fd) == device(p->next_fd)) {
		close_file(&p->kept_fd);
		p->kept_fd = fd;
		p->seen = device(fd);
		fd = -1;
	}
	close_file(&fd);
	close_file(&p->next_fd);
}

static void watch(struct pinwatch *p, struct source *source, int fd,
		  void (*ready)(void *arg, uint32_t events), uint32_t events,
		  const char *what)
{
	int r = fd < 0 ? -errno : 0;

	*source = (struct source){fd, ready, p};
	if (r == 0)
		r = loop_add(p->loop, source, events);
	if (r == 0)
		return;
	close_file(&source->fd);
	log_write(p->log, NATRA_LOG_WARN,
		  "%s: is not noticed, and limits that end by it come back"
		  " when the running pods are looked at: %s",
		  what, strerror(-r));
}

void pinwatch_open(struct pinwatch *p, struct loop *loop)
{
	p->loop = loop;
	watch(p, &p->mounts, open(MOUNTS, O_RDONLY | O_CLOEXEC), mounts_changed,
	      EPOLLPRI, "unmounting bpffs");
	watch(p, &p->removal, inotify_init1(IN_CLOEXEC | IN_NONBLOCK), removed,
	      EPOLLIN, "removing natra's directory on bpffs");
	/* Pods that run already have their limits there. */
	p->kept_fd = open_bpffs(p);
	p->seen = device(p->kept_fd);
	p->next_fd = -1;
	watch_directory(p, p->kept_fd);
}

void pinwatch_close(struct pinwatch *p)
{
	if (!p->loop)
		return;
	loop_close_source(p->loop, &p->mounts);
	loop_close_source(p->loop, &p->removal);
	close_file(&p->kept_fd);
	close_file(&p->next_fd);
}
