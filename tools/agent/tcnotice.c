/* SPDX-License-Identifier: BSD-2-Clause */
#include "tcnotice.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

/* Read at once, so that who floods the socket does not keep the loop from other work. */
#define READS_MAX 16

int tcnotice_open(void)
{
	const struct sockaddr_nl address = {
		.nl_family = AF_NETLINK,
		.nl_groups = 1U << (RTNLGRP_TC - 1),
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			NETLINK_ROUTE);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		r = -errno;
	if (r < 0)
		(void)close(fd);
	return r < 0 ? r : fd;
}

/* A new qdisc is nothing, and the kernel also tells of those that somebody only asks for, as
 * natra does. */
static bool is_change(const struct nlmsghdr *hdr)
{
	const struct tcmsg *tcm = NLMSG_DATA(hdr);

	return hdr->nlmsg_len >= NLMSG_LENGTH(sizeof(*tcm)) &&
	       (hdr->nlmsg_type == RTM_NEWTFILTER ||
		hdr->nlmsg_type == RTM_DELTFILTER ||
		hdr->nlmsg_type == RTM_DELQDISC) &&
	       TC_H_MAJ(tcm->tcm_parent) == TC_H_MAJ(TC_H_CLSACT);
}

int tcnotice_read(int fd, bool (*fn)(void *arg, uint32_t ifindex), void *arg,
		  bool *ret_any)
{
	union {
		struct nlmsghdr hdr;
		char bytes[16384];
	} buffer;
	int r = 0;

	for (int i = 0; i < READS_MAX; i++) {
		ssize_t size = recv(fd, &buffer, sizeof(buffer), MSG_DONTWAIT);
		const struct nlmsghdr *hdr = &buffer.hdr;
		unsigned int left = size > 0 ? (unsigned int)size : 0;

		if (size < 0 && errno == ENOBUFS) {
			r = -ENOBUFS;
			continue;
		}
		if (size <= 0)
			break;
		for (; NLMSG_OK(hdr, left); hdr = NLMSG_NEXT(hdr, left)) {
			const struct tcmsg *tcm = NLMSG_DATA(hdr);

			if (is_change(hdr))
				*ret_any |= fn(arg, (uint32_t)tcm->tcm_ifindex);
		}
	}
	return r;
}
