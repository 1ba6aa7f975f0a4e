/* SPDX-License-Identifier: BSD-2-Clause */
/* Upstream's limits are opened, so that what waits in them leaves before they are
 * removed; see natra_drain_leftovers. */
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "attach/leftovers.h"

/* The tbf looks at its new rate when the next packet would have been due by the old
 * one. Its bucket begins full, and is to let one long GSO packet pass. */
#define OPEN_BYTES_PER_SEC 1250000000U
#define OPEN_BURST_BYTES   (1U << 20)
#define OPEN_QUEUE_BYTES   (1U << 30)

static int open_tbf(struct natra *n, struct netlink *nl,
		    const struct link_info *link, const struct qdisc *tbf)
{
	const struct tc_tbf_qopt fast = {
		.rate = {.rate = OPEN_BYTES_PER_SEC},
		.limit = OPEN_QUEUE_BYTES,
	};
	cleanup_nlmsg struct nl_msg *msg = netlink_tc(
		RTM_NEWQDISC, 0, link->ifindex, TC_H_ROOT, tbf->handle);
	struct nlattr *options;
	int r;

	if (!tbf->kind[0])
		return 0;
	if (!msg || nla_put_string(msg, TCA_KIND, tbf->kind) < 0 ||
	    !(options = nla_nest_start(msg, TCA_OPTIONS)) ||
	    nla_put(msg, TCA_TBF_PARMS, sizeof(fast), &fast) < 0 ||
	    nla_put_u32(msg, TCA_TBF_BURST, OPEN_BURST_BYTES) < 0)
		return fail_errno(n, -ENOMEM, "netlink message");
	(void)nla_nest_end(msg, options);
	r = netlink_request(nl, msg, NULL, NULL);
	/* The pod has ended, and the qdisc with it. */
	if (r == -ENOENT || r == -ENODEV)
		return 0;
	return r < 0 ? fail_errno(n, r, "open the tbf of '%s' (%s)",
				  link->ifname, nl->extack)
		     : 0;
}

int leftovers_open(struct natra *n, struct netlink *nl,
		   const struct leftovers *l)
{
	int r = open_tbf(n, nl, &l->host, &l->tbf);

	return r < 0 ? r : open_tbf(n, nl, &l->ifb, &l->ifb_tbf);
}
