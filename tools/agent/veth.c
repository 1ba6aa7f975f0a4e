/* SPDX-License-Identifier: BSD-2-Clause */
#include "veth.h"

#include <string.h>
#include <unistd.h>

#include <netlink/netlink.h>
#include <netlink/route/link/veth.h>

#include "../../src/util/rtnl.h"

const char *veth_make(const char *ifname, const char *peer)
{
	struct nl_sock *sock;
	int r = rtnl_sock_open(&sock);

	if (r < 0)
		return strerror(-r);
	r = rtnl_link_veth_add(sock, ifname, peer, getpid());
	nl_socket_free(sock);
	return r < 0 ? nl_geterror(r) : NULL;
}
