/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/netlink.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/errno.h>
#include <netlink/handlers.h>
#include <string.h>
#include <sys/socket.h>

#include "util/rtnl.h"
#include "util/str.h"

#define MAX_ERRNO 4095 /* of the kernel's */

struct request {
	struct netlink *nl;
	int (*cb)(struct nl_msg *msg, void *arg);
	void *arg;
	uint32_t number; /* which the kernel gives its answers, too */
	int result;      /* 1: still waiting */
};

int netlink_open(struct natra *n, struct netlink *ret_nl)
{
	struct netlink nl = {0};
	int one = 1;
	int fd, r;

	r = rtnl_sock_open(&nl.sock);
	if (r < 0)
		return fail_errno(n, r, "netlink socket");
	fd = nl_socket_get_fd(nl.sock);
	/* Without these options an error is only a number, which is no reason
	 * to fail. */
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	*ret_nl = nl;
	return 0;
}

void netlink_close(struct netlink *nl)
{
	nl_socket_free(nl->sock);
	nl->sock = NULL;
}

/* Passes over what is left of the answer to an earlier request, whose end was not read: by libnl's
 * own count it would be this one's. */
static int on_number(struct nl_msg *msg, void *arg)
{
	const struct request *req = arg;

	return nlmsg_hdr(msg)->nlmsg_seq == req->number ? NL_OK : NL_SKIP;
}

static int on_valid(struct nl_msg *msg, void *arg)
{
	struct request *req = arg;
	int r = req->cb ? req->cb(msg, req->arg) : 0;

	if (r < 0 && req->result == 1)
		req->result = r;
	if (r <= 0)
		return NL_OK;
	req->result = 0;
	return NL_STOP;
}

static int on_ack(struct nl_msg *msg, void *arg)
{
	struct request *req = arg;

	(void)msg;
	if (req->result == 1)
		req->result = 0;
	return NL_STOP;
}

/* The kernel ends a list that it could not complete with an error in place of the length. */
static int on_finish(struct nl_msg *msg, void *arg)
{
	const struct nlmsghdr *hdr = nlmsg_hdr(msg);
	struct request *req = arg;
	int error = 0;

	if (nlmsg_datalen(hdr) >= (int)sizeof(error))
		memcpy(&error, nlmsg_data(hdr), sizeof(error));
	if (req->result == 1)
		req->result = error < 0 && error >= -MAX_ERRNO ? error : 0;
	return NL_STOP;
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *err, void *arg)
{
	const struct nlmsghdr *hdr =
		(const void *)((const char *)err - NLMSG_HDRLEN);
	struct request *req = arg;
	struct nlattr *text;

	(void)from;
	req->result =
		err->error <= 0 && err->error >= -MAX_ERRNO ? err->error : -EIO;
	if (hdr->nlmsg_flags & NLM_F_ACK_TLVS) {
		/* The request's payload is not echoed: NETLINK_CAP_ACK. */
		text = nla_find(
			(struct nlattr *)(err + 1),
			(int)(hdr->nlmsg_len - NLMSG_HDRLEN - sizeof(*err)),
			NLMSGERR_ATTR_MSG);
		if (text)
			(void)nla_strlcpy(req->nl->extack, text,
					  sizeof(req->nl->extack));
		str_one_line(req->nl->extack);
	}
	return NL_STOP;
}

int netlink_request(struct netlink *nl, struct nl_msg *msg,
		    int (*cb)(struct nl_msg *msg, void *arg), void *arg)
{
	struct request req = {.nl = nl, .cb = cb, .arg = arg, .result = 1};
	struct nl_cb *handlers;
	int r;

	nl->extack[0] = '\0';
	handlers = nl_cb_alloc(NL_CB_DEFAULT);
	if (!handlers)
		return -ENOMEM;
	nl_cb_set(handlers, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, on_number, &req);
	nl_cb_set(handlers, NL_CB_VALID, NL_CB_CUSTOM, on_valid, &req);
	nl_cb_set(handlers, NL_CB_ACK, NL_CB_CUSTOM, on_ack, &req);
	nl_cb_set(handlers, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, &req);
	nl_cb_err(handlers, NL_CB_CUSTOM, on_error, &req);

	r = nl_send_auto(nl->sock, msg);
	req.number = nlmsg_hdr(msg)->nlmsg_seq;
	while (r >= 0 && req.result == 1)
		r = nl_recvmsgs(nl->sock, handlers);
	nl_cb_put(handlers);
	if (req.result <= 0)
		return req.result;
	return r == -NLE_NOMEM ? -ENOMEM : -EIO;
}

struct nl_msg *netlink_message(int type, int flags, void *header, size_t size)
{
	struct nl_msg *msg = nlmsg_alloc_simple(type, NLM_F_REQUEST | flags);

	if (msg && nlmsg_append(msg, header, size, NLMSG_ALIGNTO) < 0) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

struct nl_msg *netlink_tc(int type, int flags, uint32_t ifindex,
			  uint32_t parent, uint32_t handle)
{
	struct tcmsg tcm = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = (int)ifindex,
		.tcm_parent = parent,
		.tcm_handle = handle,
	};

	return netlink_message(type, flags, &tcm, sizeof(tcm));
}

const struct tcmsg *netlink_tcmsg(struct nl_msg *msg)
{
	const struct nlmsghdr *hdr = nlmsg_hdr(msg);

	return nlmsg_datalen(hdr) < (int)sizeof(struct tcmsg) ? NULL
							      : nlmsg_data(hdr);
}

bool netlink_get_u32(const struct nlattr *attr, uint32_t *ret)
{
	if (!attr || nla_len(attr) < (int)sizeof(*ret))
		return false;
	memcpy(ret, nla_data(attr), sizeof(*ret));
	return true;
}
