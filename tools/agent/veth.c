/* SPDX-License-Identifier: BSD-2-Clause */
#include "veth.h"

#include <unistd.h>

#include <netlink/netlink.h>
#include <netlink/route/link/veth.h>

const char *veth_make(const char *ifname, const char *peer)
{
	struct nl_sock *sock = nl_socket_alloc();
	int r = sock ? nl_connect(sock, NETLINK_ROUTE) : -NLE_NOMEM;

	if (r == 0)
		r = rtnl_link_veth_add(sock, ifname, peer, getpid());
	nl_socket_free(sock);
	return r < 0 ? nl_geterror(r) : NULL;
}
