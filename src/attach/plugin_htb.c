/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plugin's htb `1:` has two classes below its root: 1:30 (hexadecimal), with the
 * limit as its rate and twice the limit as its ceiling, and 1:1, with 100 GB/s, for
 * subnets that are not limited. Where no subnets are named, all goes to 1:30.
 *
 * A bucket of htb cannot be filled, so what waits in it leaves at a higher rate, which is
 * a multiple of the limit. The ceiling is then above twice the rate by that factor, so
 * that whoever finds the htb after a kill knows its limit; the factor must be the one that
 * natra takes for that limit. How often the rate was raised is in the class's priority,
 * which decides nothing where only one class has traffic, and which is 0 in the plugin's.
 */
#include "attach/plugin_htb.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define HANDLE             TC_H_MAKE(1U << 16, 0U)
#define LIMITED_CLASS      TC_H_MAKE(1U << 16, 0x30U)
#define FREE_CLASS         TC_H_MAKE(1U << 16, 1U)
#define VERSION            3U
#define RATE_TO_QUANTUM    10U
#define FREE_BYTES_PER_SEC 100000000000ULL

struct htb_class {
	struct tc_htb_opt options;
	uint64_t rate, ceiling;
};

/* The classes that an htb has. */
struct classes {
	struct htb_class limited, free;
	bool others;
};

static bool read_class(struct nlattr *attr, struct htb_class *ret_class)
{
	struct nlattr *htb[TCA_HTB_MAX + 1];

	if (nla_parse_nested(htb, TCA_HTB_MAX, attr, NULL) < 0 ||
	    !htb[TCA_HTB_PARMS] ||
	    nla_len(htb[TCA_HTB_PARMS]) < (int)sizeof(ret_class->options))
		return false;
	memcpy(&ret_class->options, nla_data(htb[TCA_HTB_PARMS]),
	       sizeof(ret_class->options));
	ret_class->rate =
		qdisc_rate(&ret_class->options.rate, htb[TCA_HTB_RATE64]);
	ret_class->ceiling =
		qdisc_rate(&ret_class->options.ceil, htb[TCA_HTB_CEIL64]);
	return true;
}

static int note_class(struct nl_msg *msg, void *arg)
{
	const struct tcmsg *tcm = netlink_tcmsg(msg);
	struct nlattr *attrs[TCA_MAX + 1];
	struct classes *classes = arg;
	struct htb_class *class;

	if (!tcm ||
	    nlmsg_parse(nlmsg_hdr(msg), sizeof(*tcm), attrs, TCA_MAX, NULL) < 0)
		return 0;
	class = tcm->tcm_handle == LIMITED_CLASS ? &classes->limited
		: tcm->tcm_handle == FREE_CLASS  ? &classes->free
						 : NULL;
	/* The number of a leaf is that of a qdisc that somebody has put there. */
	if (!class || tcm->tcm_parent != TC_H_ROOT || tcm->tcm_info ||
	    !attrs[TCA_OPTIONS] || !read_class(attrs[TCA_OPTIONS], class))
		classes->others = true;
	return 0;
}

static bool has_plugins_options(const struct qdisc *qdisc)
{
	const struct tc_htb_glob *options = &qdisc->htb;

	return qdisc->handle == HANDLE && options->version >> 16 == VERSION &&
	       options->rate2quantum == RATE_TO_QUANTUM &&
	       (options->defcls == TC_H_MIN(LIMITED_CLASS) ||
		options->defcls == TC_H_MIN(FREE_CLASS));
}

static uint64_t factor_of(uint64_t bytes_per_sec)
{
	const uint64_t factor = DRAIN_BYTES_PER_SEC / bytes_per_sec;

	return factor < 2 ? 2 : factor;
}

/* Fills in what the class of what is limited says, if it is the plugin's. */
static void read_limit(const struct htb_class *class, struct plugin_htb *htb)
{
	const uint64_t factor = class->ceiling - 2 * class->rate;
	const bool is_raised = factor != 0;
	const uint64_t limit = is_raised ? class->rate / factor : class->rate;

	if (!limit ||
	    (is_raised && (!class->options.prio || factor != factor_of(limit) ||
			   class->rate != factor * limit)))
		return;
	htb->options = class->options;
	htb->bytes_per_sec = limit;
	htb->fills = class->options.prio;
	htb->is_raised = is_raised;
}

int plugin_htb_get(struct natra *n, struct netlink *nl,
		   const struct link_info *link, const struct qdisc *qdisc,
		   struct plugin_htb *ret_htb)
{
	cleanup_nlmsg struct nl_msg *msg =
		netlink_tc(RTM_GETTCLASS, NLM_F_DUMP, link->ifindex, HANDLE, 0);
	struct classes classes = {0};
	int r;

	*ret_htb = (struct plugin_htb){0};
	if (!has_plugins_options(qdisc))
		return 0;
	if (!msg)
		return fail_errno(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, note_class, &classes);
	if (r == -ENODEV)
		return 0;
	if (r < 0)
		return fail_errno(n, r, "list the classes of '%s'",
				  link->ifname);
	if (!classes.others && classes.free.rate == FREE_BYTES_PER_SEC &&
	    classes.free.ceiling == FREE_BYTES_PER_SEC)
		read_limit(&classes.limited, ret_htb);
	return 0;
}

static uint32_t low_part(uint64_t rate)
{
	return rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
}

static int put_options(struct nl_msg *msg, const struct plugin_htb *htb,
		       uint64_t rate, uint64_t ceiling)
{
	struct tc_htb_opt options = htb->options;

	options.rate.rate = low_part(rate);
	options.ceil.rate = low_part(ceiling);
	options.prio = htb->fills;
	if (nla_put(msg, TCA_HTB_PARMS, sizeof(options), &options) < 0 ||
	    nla_put_u64(msg, TCA_HTB_RATE64, rate) < 0)
		return -ENOMEM;
	return nla_put_u64(msg, TCA_HTB_CEIL64, ceiling);
}

static int change(struct natra *n, struct netlink *nl,
		  const struct link_info *link, const struct plugin_htb *htb,
		  uint64_t rate, uint64_t ceiling)
{
	cleanup_nlmsg struct nl_msg *msg = netlink_tc(
		RTM_NEWTCLASS, 0, link->ifindex, HANDLE, LIMITED_CLASS);
	struct nlattr *options;
	int r;

	if (!msg || nla_put_string(msg, TCA_KIND, "htb") < 0 ||
	    !(options = nla_nest_start(msg, TCA_OPTIONS)) ||
	    put_options(msg, htb, rate, ceiling) < 0)
		return fail_errno(n, -ENOMEM, "netlink message");
	(void)nla_nest_end(msg, options);
	r = netlink_request(nl, msg, NULL, NULL);
	/* The pod has ended, and the class with it. */
	if (r == -ENOENT || r == -ENODEV)
		return 0;
	return r < 0 ? fail_errno(n, r, "change the rate of '%s' (%s)",
				  link->ifname, nl->extack)
		     : 0;
}

int plugin_htb_raise(struct natra *n, struct netlink *nl,
		     const struct link_info *link, struct plugin_htb *htb)
{
	const uint64_t factor = factor_of(htb->bytes_per_sec);
	const uint64_t rate = factor * htb->bytes_per_sec;

	htb->fills++;
	htb->is_raised = true;
	return change(n, nl, link, htb, rate, 2 * rate + factor);
}

int plugin_htb_restore(struct natra *n, struct netlink *nl,
		       const struct link_info *link,
		       const struct plugin_htb *htb)
{
	return htb->is_raised ? change(n, nl, link, htb, htb->bytes_per_sec,
				       2 * htb->bytes_per_sec)
			      : 0;
}
