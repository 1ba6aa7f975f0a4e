/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/nsfs.h>

#include "util/cleanup.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71 /* Linux 5.14 */
#endif

#define SELF_NETNS "/proc/thread-self/ns/net"

#define NAMED_MAX (sizeof(NETNS_NAMED_DIR) + 256)

/* Returns the path that a path or name stands for, or NULL if that is too long. */
static const char *path_of(const char *netns, char named[NAMED_MAX])
{
	if (strchr(netns, '/'))
		return netns;
	return snprintf(named, NAMED_MAX, "%s/%s", NETNS_NAMED_DIR, netns) <
			       (int)NAMED_MAX
		       ? named
		       : NULL;
}

static int open_netns(const char *path)
{
	/* Opening a FIFO would wait for its other end. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int netns_check(int fd)
{
	int type = ioctl(fd, NS_GET_NSTYPE);

	if (type < 0 && errno != ENOTTY && errno != EBADF)
		return -errno;
	return type == CLONE_NEWNET ? 0 : -EINVAL;
}

/* Returns whether a descriptor is of the calling thread's own namespace, which has no id of itself,
 * by which the other end of a veth would be found in it. Without /proc it is taken for another
 * one. */
static bool is_own(int fd)
{
	struct stat of, own;

	return fstat(fd, &of) == 0 && stat(SELF_NETNS, &own) == 0 &&
	       of.st_ino == own.st_ino && of.st_dev == own.st_dev;
}

int netns_open(struct natra *n, const struct natra_target *target, int *ret_fd)
{
	char named[NAMED_MAX];
	const char *path = target->netns;
	cleanup_close int fd = -1;
	int r;

	if (!path && target->netns_fd <= 0) {
		*ret_fd = -1;
		return 0;
	}
	if (!path) {
		fd = fcntl(target->netns_fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return fail_errno(n, -errno, "netns_fd %d",
					  target->netns_fd);
		if (netns_check(fd) < 0)
			return refuse(n, -EINVAL,
				      "netns_fd: %d is not a network namespace",
				      target->netns_fd);
		*ret_fd = is_own(fd) ? -1 : TAKE_FD(fd);
		return 0;
	}
	path = path_of(path, named);
	if (!path)
		return refuse(n, -EINVAL, "netns: '%s' is too long",
			      target->netns);
	fd = open_netns(path);
	if (fd < 0)
		return with_code(
			n,
			fd == -ENOENT ? NATRA_CODE_NO_NETNS : NATRA_CODE_NONE,
			fail_errno(n, fd, "netns '%s'", target->netns));
	r = netns_check(fd);
	if (r < 0)
		return refuse(n, r, "netns: '%s' is not a network namespace",
			      target->netns);
	*ret_fd = is_own(fd) ? -1 : TAKE_FD(fd);
	return 0;
}

bool netns_is_left(const char *netns)
{
	char named[NAMED_MAX], byte;
	const char *path = path_of(netns, named);
	cleanup_close int fd = path ? open_netns(path) : -1;
	struct stat st;

	/* Files of /proc have a size of 0, too, and so have those of namespaces, which cannot
	 * be read. */
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       read(fd, &byte, 1) == 0;
}

int netns_inode(struct natra *n, int fd, uint64_t *ret_inode)
{
	struct stat st;

	if ((fd >= 0 ? fstat(fd, &st) : stat(SELF_NETNS, &st)) < 0)
		return fail_errno(n, -errno, "identify the network namespace");
	*ret_inode = st.st_ino;
	return 0;
}

int netns_self(int fd, struct netns_id *ret_id)
{
	socklen_t len = sizeof(ret_id->cookie);
	cleanup_close int sock = -1;
	struct netns_id id;
	struct stat st;

	if ((fd >= 0 ? fstat(fd, &st) : stat(SELF_NETNS, &st)) < 0)
		return -errno;
	id.inode = st.st_ino;
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	if (getsockopt(sock, SOL_SOCKET, SO_NETNS_COOKIE, &id.cookie, &len) < 0)
		return -errno;
	*ret_id = id;
	return 0;
}

int netns_has_link(uint32_t ifindex)
{
	char name[IF_NAMESIZE];

	if (if_indextoname(ifindex, name))
		return 1;
	return errno == ENXIO || errno == ENODEV ? 0 : -errno;
}

struct identify {
	int fd;
	struct netns_id id;
};

static int identify(void *arg)
{
	struct identify *found = arg;

	return netns_self(found->fd, &found->id);
}

int netns_is(int fd, const struct netns_id *id)
{
	struct identify found = {.fd = fd};
	int r = netns_run(NULL, fd, identify, &found);

	if (r < 0)
		return r;
	return found.id.inode == id->inode && found.id.cookie == id->cookie;
}

struct job {
	int fd;
	int type; /* CLONE_NEWNET or CLONE_NEWNS; 0: enter none */
	int (*fn)(void *arg);
	void *arg;
	int enter_result;
	int result;
};

static int enter(const struct job *job)
{
	if (!job->type)
		return 0;
	/* All threads share one root and working directory, and setns(2)
	 * refuses to change the mount namespace of a thread while they do. */
	if (job->type == CLONE_NEWNS && unshare(CLONE_FS) < 0)
		return -errno;
	if ((job->fd == NETNS_NEW ? unshare(job->type)
				  : setns(job->fd, job->type)) < 0)
		return -errno;
	return 0;
}

static void *work(void *arg)
{
	struct job *job = arg;

	job->enter_result = enter(job);
	if (job->enter_result == 0)
		job->result = job->fn(job->arg);
	return NULL;
}

/* Runs a job on a thread and waits for it. Returns -errno if no thread could be
 * started. */
static int run_on_thread(struct job *job)
{
	sigset_t all, before;
	pthread_t thread;
	int r;

	/* The thread inherits the mask, so that it gets no signal of the
	 * process. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, work, job);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		(void)pthread_join(thread, NULL);
	return -r;
}

int netns_run(struct natra *n, int fd, int (*fn)(void *arg), void *arg)
{
	struct job job = {
		.fd = fd,
		.type = CLONE_NEWNET,
		.fn = fn,
		.arg = arg,
	};
	int r;

	if (fd == -1)
		return fn(arg);
	if (n)
		log_hold(n);
	r = run_on_thread(&job);
	if (n)
		log_release(n);
	if (r < 0)
		return n ? fail_errno(n, r, "start a thread") : r;
	if (job.enter_result < 0)
		return n ? fail_errno(n, job.enter_result,
				      "enter the network namespace")
			 : job.enter_result;
	return job.result;
}

int netns_run_in_mounts(int mnt_fd, int (*fn)(void *arg), void *arg)
{
	struct job job = {
		.fd = mnt_fd,
		.type = CLONE_NEWNS,
		.fn = fn,
		.arg = arg,
	};
	int r = run_on_thread(&job);

	if (r < 0)
		return r;
	return job.enter_result < 0 ? job.enter_result : job.result;
}

int netns_run_apart(int (*fn)(void *arg), void *arg)
{
	struct job job = {.fd = -1, .fn = fn, .arg = arg};
	int r = run_on_thread(&job);

	return r < 0 ? r : job.result;
}
