/* SPDX-License-Identifier: BSD-2-Clause */
#include "qdisc_fq.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <string.h>

#include "util/str.h"

/*
 * The queue is bounded by the horizon of the programs above; these only must
 * not drop before it. 2 s of 10 Gbit/s are 38k GSO packets of 64 kB.
 */
#define FQ_LIMIT_PACKETS      50000
#define FQ_FLOW_LIMIT_PACKETS 50000
#define FQ_HORIZON_US         10000000
/* fq's hash table is memory of every pod: 2^6 buckets of 8 bytes. */
#define FQ_BUCKETS_LOG        6

static struct nl_msg *tc_message(int type, int flags, uint32_t ifindex,
				 uint32_t parent, uint32_t handle)
{
	struct nl_msg *msg = nlmsg_alloc_simple(type, NLM_F_REQUEST | flags);
	struct tcmsg tcm = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = (int)ifindex,
		.tcm_parent = parent,
		.tcm_handle = handle,
	};

	if (msg && nlmsg_append(msg, &tcm, sizeof(tcm), NLMSG_ALIGNTO) < 0) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

struct find_root {
	int ifindex;
	struct qdisc_root root;
};

static int read_root(struct nl_msg *msg, void *arg)
{
	struct tcmsg *tcm = nlmsg_data(nlmsg_hdr(msg));
	struct find_root *find = arg;
	struct nlattr *kind;

	if (nlmsg_datalen(nlmsg_hdr(msg)) < (int)sizeof(*tcm) ||
	    tcm->tcm_ifindex != find->ifindex || tcm->tcm_parent != TC_H_ROOT)
		return 0;
	kind = nlmsg_find_attr(nlmsg_hdr(msg), sizeof(*tcm), TCA_KIND);
	if (!kind)
		return 0;
	find->root.handle = tcm->tcm_handle;
	(void)nla_strlcpy(find->root.kind, kind, sizeof(find->root.kind));
	return 0;
}

int qdisc_root(struct natra *n, struct netlink *nl, uint32_t ifindex,
	       struct qdisc_root *ret_root)
{
	struct find_root find = {.ifindex = (int)ifindex};
	cleanup_nlmsg struct nl_msg *msg =
		tc_message(RTM_GETQDISC, NLM_F_DUMP, ifindex, 0, 0);
	int r;

	if (!msg)
		return natra_fail(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, read_root, &find);
	if (r < 0)
		return natra_fail(n, r, "list the qdiscs of ifindex %u",
				  ifindex);
	*ret_root = find.root;
	return 0;
}

static int put_fq(struct nl_msg *msg)
{
	struct nlattr *options;

	if (nla_put_string(msg, TCA_KIND, "fq") < 0)
		return -ENOMEM;
	options = nla_nest_start(msg, TCA_OPTIONS);
	if (!options || nla_put_u32(msg, TCA_FQ_PLIMIT, FQ_LIMIT_PACKETS) < 0 ||
	    nla_put_u32(msg, TCA_FQ_FLOW_PLIMIT, FQ_FLOW_LIMIT_PACKETS) < 0 ||
	    nla_put_u32(msg, TCA_FQ_BUCKETS_LOG, FQ_BUCKETS_LOG) < 0 ||
	    nla_put_u32(msg, TCA_FQ_HORIZON, FQ_HORIZON_US) < 0 ||
	    nla_put_u8(msg, TCA_FQ_HORIZON_DROP, 1) < 0)
		return -ENOMEM;
	nla_nest_end(msg, options);
	return 0;
}

int qdisc_fq_present(struct natra *n, struct netlink *nl, uint32_t ifindex)
{
	struct qdisc_root root;
	int r = qdisc_root(n, nl, ifindex, &root);

	if (r < 0)
		return r;
	return strcmp(root.kind, "fq") == 0 && root.handle == QDISC_FQ_HANDLE;
}

int qdisc_fq_add(struct natra *n, struct netlink *nl, uint32_t ifindex)
{
	cleanup_nlmsg struct nl_msg *msg = NULL;
	struct qdisc_root root;
	int r;

	r = qdisc_root(n, nl, ifindex, &root);
	if (r < 0)
		return r;
	if (strcmp(root.kind, "fq") == 0 && root.handle == QDISC_FQ_HANDLE)
		return 0;
	if (root.handle != 0)
		return natra_refuse(n, -EBUSY,
				    "qdisc '%s' (handle %x:) is installed",
				    root.kind, root.handle >> 16);

	/* REPLACE, because the default may itself be an fq (sysctl). */
	msg = tc_message(RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
			 ifindex, TC_H_ROOT, QDISC_FQ_HANDLE);
	if (!msg || put_fq(msg) < 0)
		return natra_fail(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, NULL, NULL);
	if (r == -ENOENT)
		return natra_refuse(n, -EOPNOTSUPP,
				    "this kernel has no fq qdisc");
	if (r < 0)
		return natra_fail(n, r, "install fq on ifindex %u (%s)",
				  ifindex, nl->extack);
	return 0;
}

int qdisc_fq_remove(struct natra *n, struct netlink *nl, uint32_t ifindex)
{
	cleanup_nlmsg struct nl_msg *msg = NULL;
	int r = qdisc_fq_present(n, nl, ifindex);

	if (r <= 0)
		return r;
	msg = tc_message(RTM_DELQDISC, NLM_F_ACK, ifindex, TC_H_ROOT,
			 QDISC_FQ_HANDLE);
	if (!msg)
		return natra_fail(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, NULL, NULL);
	if (r < 0 && r != -ENOENT && r != -ENODEV)
		return natra_fail(n, r, "remove fq from ifindex %u (%s)",
				  ifindex, nl->extack);
	return 0;
}
