/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/qdisc.h"

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

static void read_fq(struct nlmsghdr *hdr, struct qdisc *qdisc)
{
	struct nlattr *options =
		nlmsg_find_attr(hdr, sizeof(struct tcmsg), TCA_OPTIONS);
	struct nlattr *fq[QDISC_FQ_OPTIONS];

	if (!options ||
	    nla_parse_nested(fq, QDISC_FQ_OPTIONS - 1, options, NULL) < 0)
		return;
	for (int i = 0; i < QDISC_FQ_OPTIONS; i++) {
		if (fq[i] && nla_len(fq[i]) == (int)sizeof(uint32_t))
			qdisc->fq[i] = nla_get_u32(fq[i]);
	}
}

uint64_t qdisc_rate(const struct tc_ratespec *rate, const struct nlattr *rate64)
{
	return rate64 && nla_len(rate64) >= (int)sizeof(uint64_t)
		       ? nla_get_u64(rate64)
		       : rate->rate;
}

static void read_tbf(struct nlmsghdr *hdr, struct qdisc *qdisc)
{
	struct nlattr *options =
		nlmsg_find_attr(hdr, sizeof(struct tcmsg), TCA_OPTIONS);
	struct nlattr *tbf[TCA_TBF_MAX + 1];

	if (!options || nla_parse_nested(tbf, TCA_TBF_MAX, options, NULL) < 0 ||
	    !tbf[TCA_TBF_PARMS] ||
	    nla_len(tbf[TCA_TBF_PARMS]) < (int)sizeof(qdisc->tbf))
		return;
	memcpy(&qdisc->tbf, nla_data(tbf[TCA_TBF_PARMS]), sizeof(qdisc->tbf));
	qdisc->tbf_bytes_per_sec =
		qdisc_rate(&qdisc->tbf.rate, tbf[TCA_TBF_RATE64]);
	qdisc->tbf_peak_bytes_per_sec =
		qdisc_rate(&qdisc->tbf.peakrate, tbf[TCA_TBF_PRATE64]);
}

static void read_htb(struct nlmsghdr *hdr, struct qdisc *qdisc)
{
	struct nlattr *options =
		nlmsg_find_attr(hdr, sizeof(struct tcmsg), TCA_OPTIONS);
	struct nlattr *htb[TCA_HTB_MAX + 1];

	if (options && nla_parse_nested(htb, TCA_HTB_MAX, options, NULL) == 0 &&
	    htb[TCA_HTB_INIT] &&
	    nla_len(htb[TCA_HTB_INIT]) >= (int)sizeof(qdisc->htb))
		memcpy(&qdisc->htb, nla_data(htb[TCA_HTB_INIT]),
		       sizeof(qdisc->htb));
}

static void read_counters(struct nlmsghdr *hdr, struct qdisc *qdisc)
{
	struct nlattr *nested =
		nlmsg_find_attr(hdr, sizeof(struct tcmsg), TCA_STATS2);
	struct nlattr *stats[TCA_STATS_MAX + 1];
	struct gnet_stats_queue queue;
	struct gnet_stats_basic basic;

	if (!nested || nla_parse_nested(stats, TCA_STATS_MAX, nested, NULL) < 0)
		return;
	if (stats[TCA_STATS_QUEUE] &&
	    nla_len(stats[TCA_STATS_QUEUE]) >= (int)sizeof(queue)) {
		memcpy(&queue, nla_data(stats[TCA_STATS_QUEUE]), sizeof(queue));
		qdisc->backlog_bytes = queue.backlog;
	}
	/* The kernel leaves out the padding at the end of the struct. */
	if (stats[TCA_STATS_BASIC] &&
	    nla_len(stats[TCA_STATS_BASIC]) >= (int)sizeof(basic.bytes)) {
		memcpy(&basic.bytes, nla_data(stats[TCA_STATS_BASIC]),
		       sizeof(basic.bytes));
		qdisc->sent_bytes = basic.bytes;
	}
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
	if (strcmp(qdisc->kind, "tbf") == 0)
		read_tbf(nlmsg_hdr(msg), qdisc);
	if (strcmp(qdisc->kind, "htb") == 0)
		read_htb(nlmsg_hdr(msg), qdisc);
	read_counters(nlmsg_hdr(msg), qdisc);
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
