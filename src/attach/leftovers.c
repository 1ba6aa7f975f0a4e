/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Upstream's `bandwidth` plugin (and Calico, which has its code) puts qdiscs on
 * the host side of a pod and never removes them, since they go with the
 * interface: on the veth a tbf `1:` at the root for ingress, or an htb (plugin_htb.c), and an `ingress`
 * qdisc whose only filter, a u32 with the class 1:1, redirects all egress to an
 * ifb that has the same, too.
 */
#include "attach/leftovers.h"

#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <string.h>

#include "kernel/qdisc_fq.h"

#define PLUGINS_HANDLE  TC_H_MAKE(1U << 16, 0U)
#define PLUGINS_CLASS   TC_H_MAKE(1U << 16, 1U)
#define INGRESS_HANDLE  TC_H_MAKE(TC_H_INGRESS, 0U)
#define OLD_NAME_DIGITS 4

/* Reads where a u32 filter redirects to, if it is like the plugin's. */
static bool read_redirect(struct nlattr *options, uint32_t *ret_to)
{
	struct nlattr *u32[TCA_U32_MAX + 1], *act[TCA_ACT_MAX + 1];
	struct nlattr *mirred[TCA_MIRRED_MAX + 1];
	struct nlattr *first;
	const struct tc_mirred *parms;
	uint32_t class;

	if (nla_parse_nested(u32, TCA_U32_MAX, options, NULL) < 0 ||
	    !netlink_get_u32(u32[TCA_U32_CLASSID], &class) ||
	    class != PLUGINS_CLASS || !u32[TCA_U32_ACT])
		return false;
	/* Only the first action counts: an older plugin gave the same one
	 * twice. */
	first = nla_data(u32[TCA_U32_ACT]);
	if (!nla_ok(first, nla_len(u32[TCA_U32_ACT])) ||
	    nla_parse_nested(act, TCA_ACT_MAX, first, NULL) < 0 ||
	    !act[TCA_ACT_KIND] || !act[TCA_ACT_OPTIONS] ||
	    nla_strcmp(act[TCA_ACT_KIND], "mirred") != 0 ||
	    nla_parse_nested(mirred, TCA_MIRRED_MAX, act[TCA_ACT_OPTIONS],
			     NULL) < 0 ||
	    !mirred[TCA_MIRRED_PARMS] ||
	    nla_len(mirred[TCA_MIRRED_PARMS]) < (int)sizeof(*parms))
		return false;
	parms = nla_data(mirred[TCA_MIRRED_PARMS]);
	*ret_to = parms->ifindex;
	return parms->eaction == TCA_EGRESS_REDIR;
}

static int read_filter(struct nl_msg *msg, void *arg)
{
	const struct tcmsg *tcm = netlink_tcmsg(msg);
	struct nlattr *attrs[TCA_MAX + 1];
	struct leftovers *l = arg;
	struct filter filter;
	bool is_u32;

	/* The first message about each priority describes no filter. */
	if (!tcm || !tcm->tcm_handle ||
	    nlmsg_parse(nlmsg_hdr(msg), sizeof(*tcm), attrs, TCA_MAX, NULL) <
		    0 ||
	    !attrs[TCA_KIND])
		return 0;
	is_u32 = nla_strcmp(attrs[TCA_KIND], "u32") == 0;
	if (is_u32 && !TC_U32_NODE(tcm->tcm_handle))
		return 0; /* a hash table, which a u32 filter always has */
	filter.handle = tcm->tcm_handle;
	filter.info = tcm->tcm_info;
	if (is_u32 && !l->redirect.handle && attrs[TCA_OPTIONS] &&
	    read_redirect(attrs[TCA_OPTIONS], &filter.to))
		l->redirect = filter;
	else
		l->shared = true;
	return 0;
}

/* Returns whether an interface is an ifb with a name that the plugin makes from
 * a hash: behind "bwp", behind Calico's "bwcali", or, before version 0.8, the
 * hash alone. */
static bool is_plugins_ifb(const struct link_info *link)
{
	const char *name = link->ifname;

	return strcmp(link->kind, "ifb") == 0 &&
	       (strncmp(name, "bwp", 3) == 0 ||
		strncmp(name, "bwcali", 6) == 0 ||
		(strlen(name) == OLD_NAME_DIGITS &&
		 strspn(name, "0123456789abcdef") == OLD_NAME_DIGITS));
}

/* Finds the ifb. The plugin's DEL removes it and leaves the redirect, which
 * then drops what the pod sends. */
static int look_up_ifb(struct natra *n, struct netlink *nl, struct leftovers *l)
{
	struct link_info ifb = {0};
	int r = link_by_index(nl, l->redirect.to, &ifb);

	if (r == -ENODEV)
		return 0;
	if (r < 0)
		return fail_errno(n, r, "look up interface %u", l->redirect.to);
	if (is_plugins_ifb(&ifb)) {
		l->ifb = ifb;
		return 0;
	}
	/* The redirect is not the plugin's. */
	l->redirect = (struct filter){0};
	l->shared = true;
	return 0;
}

static int list_filters(struct natra *n, struct netlink *nl,
			const struct link_info *host,
			int (*cb)(struct nl_msg *msg, void *arg), void *arg)
{
	cleanup_nlmsg struct nl_msg *msg = netlink_tc(
		RTM_GETTFILTER, NLM_F_DUMP, host->ifindex, INGRESS_HANDLE, 0);
	int r;

	if (!msg)
		return fail_errno(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, cb, arg);
	if (r < 0)
		return fail_errno(n, r, "list the ingress filters of '%s'",
				  host->ifname);
	return 0;
}

static int look_at_ingress(struct natra *n, struct netlink *nl,
			   struct leftovers *l)
{
	int r = qdisc_get(n, nl, l->host.ifindex, TC_H_INGRESS, &l->ingress);

	if (r < 0 || strcmp(l->ingress.kind, "ingress") != 0)
		return r;
	r = list_filters(n, nl, &l->host, read_filter, l);
	return r == 0 && l->redirect.handle ? look_up_ifb(n, nl, l) : r;
}

static int look_at_root(struct natra *n, struct netlink *nl,
			const struct link_info *link, struct limiting *ret)
{
	struct limiting root = {0};
	int r = qdisc_get(n, nl, link->ifindex, TC_H_ROOT, &root.qdisc);

	if (r == 0 && strcmp(root.qdisc.kind, "htb") == 0) {
		r = plugin_htb_get(n, nl, link, &root.qdisc, &root.htb);
		root.bytes_per_sec = root.htb.bytes_per_sec;
	} else if (strcmp(root.qdisc.kind, "tbf") == 0 &&
		   root.qdisc.handle == PLUGINS_HANDLE) {
		root.bytes_per_sec = root.qdisc.tbf_bytes_per_sec;
	}
	if (r == 0)
		*ret = root.bytes_per_sec ? root : (struct limiting){0};
	return r;
}

int leftovers_find(struct natra *n, struct netlink *nl,
		   const struct link_info *pod, int pod_fd,
		   struct leftovers *ret_leftovers)
{
	struct leftovers l = {0};
	int r;

	r = link_host_peer(n, nl, pod, pod_fd, &l.host);
	if (r == -EOPNOTSUPP) {
		forget_error(n);
		*ret_leftovers = (struct leftovers){0};
		return 0;
	}
	if (r == 0)
		r = look_at_root(n, nl, &l.host, &l.root);
	if (r == 0)
		r = look_at_ingress(n, nl, &l);
	if (r == 0 && l.ifb.ifindex)
		r = look_at_root(n, nl, &l.ifb, &l.ifb_root);
	if (r < 0)
		return r;
	*ret_leftovers = l;
	return 0;
}

/* Returns whether the interface with the peer's index has qdiscs like the plugin's. If
 * not, which is nearly always so, an attach need not find out whether that interface
 * really is the peer. */
static bool may_be_left(struct natra *n, struct netlink *nl,
			const struct link_info *pod)
{
	struct qdisc root = {0}, ingress = {0};

	if (strcmp(pod->kind, "veth") != 0 || !pod->peer_ifindex)
		return false;
	(void)qdisc_get(n, nl, pod->peer_ifindex, TC_H_ROOT, &root);
	(void)qdisc_get(n, nl, pod->peer_ifindex, TC_H_INGRESS, &ingress);
	return strcmp(root.kind, "tbf") == 0 || strcmp(root.kind, "htb") == 0 ||
	       strcmp(ingress.kind, "ingress") == 0;
}

void leftovers_warn(struct natra *n, const struct link_info *pod, int pod_fd)
{
	cleanup_netlink struct netlink nl = {0};
	struct leftovers l;

	if (netlink_open(n, &nl) < 0 || !may_be_left(n, &nl, pod) ||
	    leftovers_find(n, &nl, pod, pod_fd, &l) < 0)
		return;
	if (l.root.qdisc.kind[0] || l.redirect.handle)
		log_line(
			n, NATRA_LOG_WARN,
			"limits of the bandwidth plugin on '%s' hold as well:%s%s%s%s",
			l.host.ifname, l.root.qdisc.kind[0] ? " " : "",
			l.root.qdisc.kind,
			l.redirect.handle ? " redirect to " : "",
			l.redirect.handle && !l.ifb.ifindex ? "nowhere"
							    : l.ifb.ifname);
}

enum natra_code leftovers_code(struct natra *n, const struct link_info *pod,
			       int pod_fd, bool at_root)
{
	KEEP_ERROR_SCOPE(n);
	cleanup_netlink struct netlink nl = {0};
	struct leftovers l;

	if (n->code != NATRA_CODE_OTHER_QDISC || netlink_open(n, &nl) < 0 ||
	    leftovers_find(n, &nl, pod, pod_fd, &l) < 0)
		return kept_error_.code;
	if (at_root ? l.root.qdisc.kind[0] && qdisc_fq_is_there(n)
		    : l.redirect.handle && !l.shared)
		return NATRA_CODE_LEFTOVERS;
	return kept_error_.code;
}

/* Removes a filter; handle 0 stands for all filters of its priority. */
static int remove_filter(struct natra *n, struct netlink *nl,
			 const struct leftovers *l, uint32_t handle)
{
	cleanup_nlmsg struct nl_msg *msg = netlink_tc(
		RTM_DELTFILTER, 0, l->host.ifindex, INGRESS_HANDLE, handle);
	struct tcmsg *tcm;
	int r;

	if (!msg || nla_put_string(msg, TCA_KIND, "u32") < 0)
		return fail_errno(n, -ENOMEM, "netlink message");
	tcm = nlmsg_data(nlmsg_hdr(msg));
	tcm->tcm_info = l->redirect.info;
	r = netlink_request(nl, msg, NULL, NULL);
	if (r < 0 && r != -ENOENT && r != -ENODEV)
		return fail_errno(n, r, "remove the redirect from '%s' (%s)",
				  l->host.ifname, nl->extack);
	return 0;
}

struct priority {
	uint32_t info;
	bool used;
};

static int read_priority(struct nl_msg *msg, void *arg)
{
	const struct tcmsg *tcm = netlink_tcmsg(msg);
	struct priority *priority = arg;

	if (tcm && tcm->tcm_info == priority->info &&
	    TC_U32_NODE(tcm->tcm_handle))
		priority->used = true;
	return 0;
}

static int remove_redirect(struct natra *n, struct netlink *nl,
			   const struct leftovers *l)
{
	struct priority priority = {.info = l->redirect.info};
	int r;

	if (!l->shared)
		return qdisc_remove(n, nl, l->host.ifindex, TC_H_INGRESS,
				    &l->ingress);
	r = remove_filter(n, nl, l, l->redirect.handle);
	if (r == 0)
		r = list_filters(n, nl, &l->host, read_priority, &priority);
	/* Even without a filter the priority would stay u32's, and no other
	 * kind of filter could use the number. */
	if (r == 0 && !priority.used)
		r = remove_filter(n, nl, l, 0);
	return r;
}

int leftovers_remove(struct natra *n, struct netlink *nl,
		     const struct leftovers *l)
{
	int r = 0;

	/* The ifb goes last: a redirect without it drops what the pod sends. */
	if (l->root.qdisc.kind[0])
		r = qdisc_remove(n, nl, l->host.ifindex, TC_H_ROOT,
				 &l->root.qdisc);
	if (r == 0 && l->redirect.handle)
		r = remove_redirect(n, nl, l);
	if (r == 0 && l->redirect.handle && l->ifb.ifindex)
		r = link_remove(n, nl, l->ifb.ifindex);
	return r;
}
