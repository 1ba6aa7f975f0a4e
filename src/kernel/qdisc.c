/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/qdisc.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

static void read_fq(struct nlmsghdr *hdr, struct qdisc *qdisc)
{
	struct nlattr *options =
		nlmsg_find_attr(hdr, sizeof(struct tcmsg), TCA_OPTIONS);
	struct nlattr *mask =
		options ? nla_find(nla_data(options), nla_len(options),
				   TCA_FQ_ORPHAN_MASK)
			: NULL;

	if (mask && nla_len(mask) >= (int)sizeof(uint32_t))
		qdisc->fq_orphan_mask = nla_get_u32(mask);
}

static int read_qdisc(struct nl_msg *msg, void *arg)
{
	const struct tcmsg *tcm = netlink_tcmsg(msg);
	struct qdisc *qdisc = arg;
	struct nlattr *kind;

	if (!tcm)
		return 0;
	kind = nlmsg_find_attr(nlmsg_hdr(msg), sizeof(*tcm), TCA_KIND);
	if (!kind)
		return 0;
	qdisc->handle = tcm->tcm_handle;
	(void)nla_strlcpy(qdisc->kind, kind, sizeof(qdisc->kind));
	if (strcmp(qdisc->kind, "fq") == 0)
		read_fq(nlmsg_hdr(msg), qdisc);
	return 0;
}

/* Asks for one qdisc, since a dump would be of all interfaces of the node. The
 * kernel sends the answer to those who listen for changes, and to us because of
 * NLM_F_ECHO. */
int qdisc_get(struct natra *n, struct netlink *nl, uint32_t ifindex,
	      uint32_t parent, struct qdisc *ret_qdisc)
{
	cleanup_nlmsg struct nl_msg *msg =
		netlink_tc(RTM_GETQDISC, NLM_F_ECHO, ifindex, parent, 0);
	struct qdisc qdisc = {0};
	int r;

	if (!msg)
		return fail_errno(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, read_qdisc, &qdisc);
	if (r < 0 && r != -ENOENT && r != -ENODEV)
		return fail_errno(n, r, "look up the qdisc of ifindex %u",
				  ifindex);
	*ret_qdisc = qdisc;
	return 0;
}

int qdisc_remove(struct natra *n, struct netlink *nl, uint32_t ifindex,
		 uint32_t parent, const struct qdisc *qdisc)
{
	cleanup_nlmsg struct nl_msg *msg =
		netlink_tc(RTM_DELQDISC, 0, ifindex, parent, qdisc->handle);
	int r;

	/* The kernel compares handle and kind, and returns -EINVAL if either
	 * differs. */
	if (!msg || nla_put_string(msg, TCA_KIND, qdisc->kind) < 0)
		return fail_errno(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, NULL, NULL);
	if (r < 0 && r != -ENOENT && r != -ENODEV && r != -EINVAL)
		return fail_errno(n, r, "remove %s from ifindex %u (%s)",
				  qdisc->kind, ifindex, nl->extack);
	return 0;
}
