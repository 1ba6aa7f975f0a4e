/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket for questions to the kernel's rtnetlink, which takes messages from nobody else. */
#ifndef NATRA_UTIL_RTNL_H
#define NATRA_UTIL_RTNL_H

#include <errno.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netlink/netlink.h>
#include <netlink/socket.h>

/*
 * Opens one in the thread's network namespace. Returns it or -errno.
 *
 * Who has CAP_NET_ADMIN there, as a pod may, finds the port of the socket in /proc/net/netlink and
 * could send what looks like the kernel's answer: libnl counts them from the time. To a socket that is
 * connected to the kernel nobody else can send.
 */
static inline int rtnl_open(void)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	char byte;
	int r;

	if (fd < 0)
		return -errno;
	/* This also gives it its port: with bind(2) it would have one before it is connected. */
	if (connect(fd, (const struct sockaddr *)&kernel, sizeof(kernel)) < 0) {
		r = -errno;
		(void)close(fd);
		return r;
	}
	/* Nothing was asked yet, so what is here came while the kernel connected it. */
	while (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) >= 0 ||
	       errno == ENOBUFS)
		;
	return fd;
}

/* Opens one as a socket of libnl's, which the caller frees: nl_connect() would take messages from
 * anybody. Returns 0 or -errno. */
static inline int rtnl_sock_open(struct nl_sock **ret)
{
	struct nl_sock *sock = nl_socket_alloc();
	int fd = sock ? rtnl_open() : -ENOMEM;

	if (fd >= 0 && nl_socket_set_fd(sock, NETLINK_ROUTE, fd) < 0) {
		(void)close(fd);
		fd = -EIO;
	}
	if (fd < 0) {
		nl_socket_free(sock);
		return fd;
	}
	*ret = sock;
	return 0;
}

#endif
