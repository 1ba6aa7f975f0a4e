/* SPDX-License-Identifier: BSD-2-Clause */
/* A socket that asks rtnetlink takes messages from the kernel only, whoever knows its port. */
#include "cm.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <netlink/msg.h>

#include "util/rtnl.h"

/* Sends what looks like the end of an answer to the port. Returns 0 or -errno. */
static int forge(uint32_t port)
{
	const struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = port};
	const struct {
		struct nlmsghdr hdr;
		struct nlmsgerr err;
	} message = {
		.hdr = {.nlmsg_len = sizeof(message),
			.nlmsg_type = NLMSG_ERROR},
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int r = 0;

	assert_true(fd >= 0);
	if (sendto(fd, &message, sizeof(message), 0,
		   (const struct sockaddr *)&to, sizeof(to)) < 0)
		r = -errno;
	(void)close(fd);
	return r;
}

static int see_loopback(struct nl_msg *msg, void *arg)
{
	const struct ifinfomsg *info = nlmsg_data(nlmsg_hdr(msg));

	if (nlmsg_hdr(msg)->nlmsg_type == RTM_NEWLINK && info->ifi_index == 1)
		*(bool *)arg = true;
	return NL_OK;
}

TH_TEST(others_cannot_answer)
{
	struct ifinfomsg info = {.ifi_index = 1};
	struct nl_sock *sock = NULL;
	bool seen = false;

	assert_int_equal(rtnl_sock_open(&sock), 0);
	assert_int_equal(forge(nl_socket_get_local_port(sock)), -ECONNREFUSED);
	assert_int_equal(nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM,
					     see_loopback, &seen),
			 0);
	assert_true(nl_send_simple(sock, RTM_GETLINK, 0, &info, sizeof(info)) >
		    0);
	assert_int_equal(nl_recvmsgs_default(sock), 0);
	assert_true(seen);
	nl_socket_free(sock);
}

static int anybody_can_forge(void **state)
{
	struct nl_sock *anybody = nl_socket_alloc();
	const bool can_try = anybody &&
			     nl_connect(anybody, NETLINK_ROUTE) == 0 &&
			     forge(nl_socket_get_local_port(anybody)) == 0;

	nl_socket_free(anybody);
	if (!can_try) {
		puts("needs CAP_NET_ADMIN, without which nobody can forge");
		exit(77);
	}
	return 0;
}

TH_MAIN(anybody_can_forge, NULL)
