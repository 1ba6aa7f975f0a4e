/* SPDX-License-Identifier: BSD-2-Clause */
/* All of natra's rtnetlink: a socket in the namespace of the calling thread,
 * and requests whose errors carry the kernel's own words. */
#ifndef NATRA_KERNEL_NETLINK_H
#define NATRA_KERNEL_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include <netlink/netlink.h>
#include <netlink/msg.h>
#include <netlink/attr.h>

#include "base/handle.h"

#define NETLINK_EXTACK_MAX 160

struct netlink {
	struct nl_sock *sock;
	char extack[NETLINK_EXTACK_MAX]; /* of the last failed request, or "" */
};

int netlink_open(struct natra *n, struct netlink *ret_nl);
void netlink_close(struct netlink *nl);
#define cleanup_netlink __attribute__((cleanup(netlink_close)))

/*
 * Sends `msg` (not taken) and waits for its acknowledgement or the end of its
 * dump; `cb` sees each answer and may be NULL. If it returns 1, the request ends: the rest
 * of the dump stays in the socket, which can only be closed then. Returns 0 or -errno.
 */
int netlink_request(struct netlink *nl, struct nl_msg *msg,
		    int (*cb)(struct nl_msg *msg, void *arg), void *arg);

/* Makes a request that begins with a header of its family. Returns NULL if
 * there is no memory. */
struct nl_msg *netlink_message(int type, int flags, void *header, size_t size);

/* Makes a request about a qdisc or filter, without attributes. Returns NULL if
 * there is no memory. */
struct nl_msg *netlink_tc(int type, int flags, uint32_t ifindex,
			  uint32_t parent, uint32_t handle);

/* Returns the header of a message about a qdisc or filter, or NULL if the
 * message is too short. */
const struct tcmsg *netlink_tcmsg(struct nl_msg *msg);

/* Reads a number. Returns false if there is no such attribute or it is too
 * short. */
bool netlink_get_u32(const struct nlattr *attr, uint32_t *ret);

static inline void netlink_freep(struct nl_msg **msg)
{
	nlmsg_free(*msg);
}
#define cleanup_nlmsg __attribute__((cleanup(netlink_freep)))

#endif
