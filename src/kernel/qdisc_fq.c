/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/qdisc_fq.h"

#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "kernel/link.h"
#include "kernel/netns.h"
#include "kernel/qdisc.h"

/*
 * The horizon of natra's programs bounds the queue. fq's own limits must be large
 * enough not to drop before that, because fq drops mice, too. The default horizon holds
 * 4 MB, which are 95k of the shortest frames (UDP without data, 42 bytes). From
 * 320 Mbit/s on, the least horizon of 100 ms applies: at 1 Gbit/s that is 12.5 MB,
 * which packets under 125 bytes do not reach before fq is full.
 */
#define FQ_LIMIT_PACKETS      100000
#define FQ_FLOW_LIMIT_PACKETS 100000
#define FQ_HORIZON_US         10000000
/* Each pod's fq has a hash table in memory, so it is kept small: 2^6 buckets of
 * 8 bytes. */
#define FQ_BUCKETS_LOG        6
#define LOOPBACK_IFINDEX      1

/* These options decide, beside the orphan mask, whether fq holds a packet for as long as natra has
 * told. By default fq also heeds the rate that a sender sets for his socket (SO_MAX_PACING_RATE),
 * which comes here through veths and bridges: who sets a very low one fills the queue of all. TCP paces
 * by timers of its own where it needs to. natra also sets that fq drops what is beyond its horizon, and
 * does not compare it, since that is fq's default. */
static const struct {
	int number;
	uint32_t value;
	const char *name;
} options[] = {
	{TCA_FQ_PLIMIT, FQ_LIMIT_PACKETS, "limit"},
	{TCA_FQ_FLOW_PLIMIT, FQ_FLOW_LIMIT_PACKETS, "flow_limit"},
	{TCA_FQ_RATE_ENABLE, 0, "pacing"},
	{TCA_FQ_HORIZON, FQ_HORIZON_US, "horizon"},
};

/* Returns the name of an option that was changed, or NULL. */
static const char *changed_option(const struct qdisc *root)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (root->fq[options[i].number] != options[i].value)
			return options[i].name;
	}
	return NULL;
}

static bool is_ours(const struct qdisc *root)
{
	return strcmp(root->kind, "fq") == 0 && root->handle == QDISC_FQ_HANDLE;
}

static int put_fq(struct nl_msg *msg)
{
	struct nlattr *nested;

	if (nla_put_string(msg, TCA_KIND, "fq") < 0)
		return -ENOMEM;
	nested = nla_nest_start(msg, TCA_OPTIONS);
	if (!nested ||
	    nla_put_u32(msg, TCA_FQ_BUCKETS_LOG, FQ_BUCKETS_LOG) < 0 ||
	    nla_put_u32(msg, TCA_FQ_ORPHAN_MASK, QDISC_FQ_ORPHAN_MASK) < 0 ||
	    nla_put_u8(msg, TCA_FQ_HORIZON_DROP, 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (nla_put_u32(msg, options[i].number, options[i].value) < 0)
			return -ENOMEM;
	}
	nla_nest_end(msg, nested);
	return 0;
}

int qdisc_fq_present(struct natra *n, struct netlink *nl, uint32_t ifindex,
		     uint32_t *ret_orphan_mask, const char **ret_changed)
{
	struct qdisc root;
	int r = qdisc_get(n, nl, ifindex, TC_H_ROOT, &root);

	if (r < 0)
		return r;
	*ret_orphan_mask = root.fq[TCA_FQ_ORPHAN_MASK];
	*ret_changed = changed_option(&root);
	return is_ours(&root);
}

/*
 * Returns -EBUSY if the interface will get the qdisc mq. An interface that has
 * never been up has no root qdisc yet. When it comes up, the kernel gives mq to
 * a device with several transmit queues. Such devices are physical
 * ones and virtual functions, which have no kind, and tun. A veth or macvlan may
 * count several queues, but gets noqueue.
 */
static int refuse_future_mq(struct natra *n, struct netlink *nl,
			    uint32_t ifindex)
{
	struct link_info link;
	int r = link_by_index(nl, ifindex, &link);

	if (r < 0)
		return fail_errno(n, r, "look up ifindex %u", ifindex);
	if (link.tx_queues <= 1 ||
	    (link.kind[0] && strcmp(link.kind, "tun") != 0))
		return 0;
	return refuse(n, -EBUSY,
		      "the interface has %u transmit queues, and fq "
		      "would be one for all",
		      link.tx_queues);
}

/* Returns 0 if fq may take the place of the qdisc at the root, else -EBUSY. */
static int check_root(struct natra *n, struct netlink *nl, uint32_t ifindex,
		      const struct qdisc *root)
{
	if (root->handle != 0)
		return with_code(n, NATRA_CODE_OTHER_QDISC,
				 refuse(n, -EBUSY,
					"qdisc '%s' (handle %x:) is installed",
					root->kind, root->handle >> 16));
	if (strcmp(root->kind, "mq") == 0)
		return refuse(n, -EBUSY,
			      "qdisc 'mq' has a queue for each transmit "
			      "queue, and fq would be one for all");
	return root->kind[0] ? 0 : refuse_future_mq(n, nl, ifindex);
}

int qdisc_fq_add(struct natra *n, struct netlink *nl, uint32_t ifindex)
{
	cleanup_nlmsg struct nl_msg *msg = NULL;
	struct qdisc root;
	int r;

	r = qdisc_get(n, nl, ifindex, TC_H_ROOT, &root);
	if (r < 0)
		return r;
	if (is_ours(&root) && !changed_option(&root) &&
	    root.fq[TCA_FQ_ORPHAN_MASK] == QDISC_FQ_ORPHAN_MASK)
		return 0;
	r = is_ours(&root) ? 0 : check_root(n, nl, ifindex, &root);
	if (r < 0)
		return r;

	/* Without NLM_F_REPLACE the kernel changes natra's own in place, and lets a new one take the
	 * place of a default, which has no handle, but of no other that has come since. */
	msg = netlink_tc(RTM_NEWQDISC, NLM_F_CREATE, ifindex, TC_H_ROOT,
			 QDISC_FQ_HANDLE);
	if (!msg || put_fq(msg) < 0)
		return fail_errno(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, NULL, NULL);
	if (r == -ENOENT)
		return refuse(n, -EOPNOTSUPP, "this kernel has no fq qdisc");
	if (r == -EEXIST)
		return with_code(
			n, NATRA_CODE_OTHER_QDISC,
			refuse(n, -EBUSY,
			       "another qdisc has just been installed"));
	if (r < 0)
		return fail_errno(n, r, "install fq on ifindex %u (%s)",
				  ifindex, nl->extack);
	return 0;
}

static int try_fq(void *arg)
{
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(arg, &nl);

	return r < 0 ? r : qdisc_fq_add(arg, &nl, LOOPBACK_IFINDEX);
}

bool qdisc_fq_is_there(struct natra *n)
{
	KEEP_ERROR_SCOPE(n);

	return netns_run(n, NETNS_NEW, try_fq, n) == 0;
}

int qdisc_fq_remove(struct natra *n, struct netlink *nl, uint32_t ifindex)
{
	struct qdisc root;
	int r = qdisc_get(n, nl, ifindex, TC_H_ROOT, &root);

	if (r < 0 || !is_ours(&root))
		return r;
	return qdisc_remove(n, nl, ifindex, TC_H_ROOT, &root);
}
