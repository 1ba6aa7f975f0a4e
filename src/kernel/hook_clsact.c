/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/hook.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "kernel/qdisc.h"

/*
 * A filter that returns OK ends the walk for all priorities behind it, and
 * there are owners that do so at priority 1. cls_bpf puts a new filter in front
 * of the others of its priority, so if another filter is at 1, natra goes
 * there too; else it leaves 1 to others, who may flush it.
 */
#define FRONT_PRIORITY 1
#define OWN_PRIORITY   2

/*
 * Handles begin here and not at 1, where the kernel's own choice begins: owners
 * who number their only filter 1 replace and delete what they find under that
 * number. A program's id is added, which is in use only once, so that two
 * generations of an attachment have different handles, too.
 */
#define FIRST_HANDLE 0x1000

/*
 * The most filters of a hook that are read. A pod with CAP_NET_ADMIN can make any number on
 * its own interface, and the kernel takes minutes to list some 100 000: for each part of the
 * answer it counts from the first one again.
 */
#define FILTERS_MAX 128

static uint32_t parent_of(const struct hook *hook)
{
	return TC_H_MAKE(TC_H_CLSACT,
			 hook->ingress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

static const char *name_of(const struct hook *hook)
{
	return hook->ingress ? "ingress" : "egress";
}

int hook_clsact_make(struct natra *n, struct netlink *nl, uint32_t ifindex)
{
	cleanup_nlmsg struct nl_msg *msg =
		netlink_tc(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex,
			   TC_H_CLSACT, TC_H_MAKE(TC_H_CLSACT, 0));
	int r;

	if (!msg || nla_put_string(msg, TCA_KIND, "clsact") < 0)
		return fail_errno(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, NULL, NULL);
	if (r == -EEXIST)
		return 0; /* another process made it first, and shares it */
	if (r == -ENOENT || r == -EOPNOTSUPP)
		return refuse(n, -EOPNOTSUPP,
			      "this kernel has no clsact qdisc");
	return r < 0 ? fail_errno(n, r, "create clsact on ifindex %u (%s)",
				  ifindex, nl->extack)
		     : 0;
}

static int ensure_clsact(struct natra *n, struct netlink *nl,
			 const struct hook *hook)
{
	struct qdisc qdisc;
	int r = qdisc_get(n, nl, hook->ifindex, TC_H_CLSACT, &qdisc);

	if (r < 0)
		return r;
	if (qdisc.kind[0] && strcmp(qdisc.kind, "clsact") != 0)
		return with_code(
			n, NATRA_CODE_OTHER_QDISC,
			refuse(n, -EOPNOTSUPP,
			       "qdisc '%s' of another owner is in place of clsact",
			       qdisc.kind));
	return qdisc.kind[0] ? 0 : hook_clsact_make(n, nl, hook->ifindex);
}

struct list_filters {
	hook_list_fn cb;
	void *arg;
	int result;
	int count;
	bool is_cut; /* there are more that are not listed */
};

static int read_filter(struct nl_msg *msg, void *arg)
{
	const struct tcmsg *tcm = netlink_tcmsg(msg);
	struct hook_program program = {0};
	struct list_filters *list = arg;
	struct nlattr *attrs[TCA_MAX + 1];
	struct nlattr *bpf[TCA_BPF_MAX + 1];

	if (++list->count > FILTERS_MAX) {
		list->is_cut = true;
		return 1;
	}
	if (!tcm || tcm->tcm_handle == 0 ||
	    nlmsg_parse(nlmsg_hdr(msg), sizeof(*tcm), attrs, TCA_MAX, NULL) <
		    0 ||
	    !attrs[TCA_KIND])
		return 0;
	program.handle = tcm->tcm_handle;
	program.priority = TC_H_MAJ(tcm->tcm_info) >> 16;
	(void)nla_strlcpy(program.name, attrs[TCA_KIND], sizeof(program.name));
	/* u32 lists its hash tables, too. */
	if (strcmp(program.name, "u32") == 0 && !TC_U32_KEY(program.handle))
		return 0;
	if (strcmp(program.name, "bpf") == 0 && attrs[TCA_OPTIONS] &&
	    nla_parse_nested(bpf, TCA_BPF_MAX, attrs[TCA_OPTIONS], NULL) == 0) {
		/* TCA_BPF_NAME is free text, chosen by the program that added the filter: no
		 * proof of whose it is. */
		if (netlink_get_u32(bpf[TCA_BPF_ID], &program.prog_id) &&
		    program.prog_id)
			hook_program_look(&program);
		if (bpf[TCA_BPF_NAME])
			(void)nla_strlcpy(program.label, bpf[TCA_BPF_NAME],
					  sizeof(program.label));
	}
	list->result = list->cb(list->arg, &program);
	return list->result != 0;
}

/* Reads filters of all priorities, or of one, by a socket of its own, since it may leave
 * unread answers in it. */
static int list_filters(struct natra *n, const struct hook *hook,
			uint32_t priority, struct list_filters *list)
{
	cleanup_nlmsg struct nl_msg *msg = netlink_tc(
		RTM_GETTFILTER, NLM_F_DUMP, hook->ifindex, parent_of(hook), 0);
	cleanup_netlink struct netlink nl = {0};
	struct qdisc qdisc;
	int r = netlink_open(n, &nl);

	if (r < 0)
		return r;
	/* An `ingress` qdisc lists its filters as those of egress, too. */
	if (!hook->ingress) {
		r = qdisc_get(n, &nl, hook->ifindex, TC_H_CLSACT, &qdisc);
		if (r < 0 || strcmp(qdisc.kind, "clsact") != 0)
			return r;
	}
	if (!msg)
		return fail_errno(n, -ENOMEM, "netlink message");
	((struct tcmsg *)nlmsg_data(nlmsg_hdr(msg)))->tcm_info =
		TC_H_MAKE(priority << 16, 0);
	r = netlink_request(&nl, msg, read_filter, list);
	if (r == -ENODEV || r == -EINVAL || r == -ENOENT)
		return 0; /* there is no such hook, so it has no filters */
	/* One of them has more text than the kernel can list, and hides all behind it. */
	if (r == -EMSGSIZE) {
		list->is_cut = true;
		return list->result;
	}
	return r < 0 ? fail_errno(n, r, "list the %s filters of ifindex %u",
				  name_of(hook), hook->ifindex)
		     : list->result;
}

int hook_clsact_list(struct natra *n, const struct hook *hook, hook_list_fn cb,
		     void *arg, bool *ret_is_cut)
{
	struct list_filters list = {.cb = cb, .arg = arg};
	int r = list_filters(n, hook, 0, &list);

	*ret_is_cut = list.is_cut;
	if (list.is_cut)
		log_line(
			n, NATRA_LOG_WARN,
			"the clsact %s of ifindex %u has more than %d filters, or one that the kernel cannot list: the others are not looked at",
			name_of(hook), hook->ifindex, FILTERS_MAX);
	return r;
}

static int get_clsact(struct natra *n, struct netlink *nl, uint32_t ifindex,
		      struct qdisc *ret_qdisc)
{
	int r = qdisc_get(n, nl, ifindex, TC_H_CLSACT, ret_qdisc);

	return r < 0 ? r : strcmp(ret_qdisc->kind, "clsact") == 0;
}

int hook_clsact_is_there(struct natra *n, struct netlink *nl, uint32_t ifindex)
{
	struct qdisc qdisc;

	return get_clsact(n, nl, ifindex, &qdisc);
}

static int is_any(void *arg, const struct hook_program *program)
{
	(void)arg;
	(void)program;
	return 1;
}

/* The look and the removal are two calls: a filter that somebody adds in between is lost with the
 * qdisc. The kernel has no call that removes only an empty one. */
int hook_clsact_remove(struct natra *n, struct netlink *nl, uint32_t ifindex)
{
	struct qdisc qdisc;
	int r = get_clsact(n, nl, ifindex, &qdisc);

	if (r != 1)
		return r;
	for (int i = 0; i < 2; i++) {
		struct hook hook = {.ifindex = ifindex, .ingress = i == 0};
		struct list_filters any = {.cb = is_any};

		r = list_filters(n, &hook, 0, &any);
		if (r != 0 || any.is_cut)
			return r < 0 ? r : 0;
	}
	return qdisc_remove(n, nl, ifindex, TC_H_CLSACT, &qdisc);
}

static int is_in_front(void *arg, const struct hook_program *program)
{
	(void)arg;
	return program->priority == FRONT_PRIORITY &&
	       !hook_program_is_natra(program);
}

/* Makes a request about the filter of a program, without what it is to do. Returns NULL if there is
 * no memory. */
static struct nl_msg *filter_message(int type, int flags,
				     const struct hook *hook, uint32_t prog_id,
				     uint32_t priority)
{
	struct nl_msg *msg =
		netlink_tc(type, flags, hook->ifindex, parent_of(hook),
			   FIRST_HANDLE + prog_id);

	if (!msg)
		return NULL;
	((struct tcmsg *)nlmsg_data(nlmsg_hdr(msg)))->tcm_info =
		TC_H_MAKE(priority << 16, htons(ETH_P_ALL));
	if (nla_put_string(msg, TCA_KIND, "bpf") < 0) {
		nlmsg_free(msg);
		return NULL;
	}
	return msg;
}

/* Adds what the filter is to do: the program decides. The name is shown by tc. */
static int put_program(struct nl_msg *msg, int prog_fd, uint32_t prog_id)
{
	struct hook_program program = {.prog_id = prog_id};
	char text[32];
	struct nlattr *options;

	hook_program_look(&program);
	(void)snprintf(text, sizeof(text), "%s:[%u]", program.name, prog_id);
	options = nla_nest_start(msg, TCA_OPTIONS);
	if (!options || nla_put_u32(msg, TCA_BPF_FD, (uint32_t)prog_fd) < 0 ||
	    nla_put_string(msg, TCA_BPF_NAME, text) < 0 ||
	    nla_put_u32(msg, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT) < 0)
		return -ENOMEM;
	nla_nest_end(msg, options);
	return 0;
}

/* Returns whether an answer says that a hook cannot have natra's filter: a filter of another kind or
 * protocol has its priority, or another one its handle, or the hook shares its filters with others.
 * Somebody else, perhaps in the pod, has made it so. */
static bool is_taken(int r)
{
	return r == -EINVAL || r == -EEXIST || r == -EOPNOTSUPP;
}

/* Returns -errno without an error text. */
static int add_filter(struct netlink *nl, const struct hook *hook, int prog_fd,
		      uint32_t prog_id, uint32_t priority)
{
	cleanup_nlmsg struct nl_msg *msg =
		filter_message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, hook,
			       prog_id, priority);

	if (!msg || put_program(msg, prog_fd, prog_id) < 0)
		return -ENOMEM;
	return netlink_request(nl, msg, NULL, NULL);
}

int hook_clsact_attach(struct natra *n, struct netlink *nl,
		       const struct hook *hook, int prog_fd, uint32_t prog_id)
{
	struct list_filters in_front = {.cb = is_in_front};
	int r = ensure_clsact(n, nl, hook);
	bool front;

	if (r == 0)
		r = list_filters(n, hook, FRONT_PRIORITY, &in_front);
	if (r < 0)
		return r;
	front = r == 1 || in_front.is_cut;
	r = front ? add_filter(nl, hook, prog_fd, prog_id, FRONT_PRIORITY)
		  : -EINVAL;
	if (is_taken(r))
		r = add_filter(nl, hook, prog_fd, prog_id, OWN_PRIORITY);
	/* Another mode may be possible. */
	if (is_taken(r))
		return with_code(
			n, NATRA_CODE_OTHER_QDISC,
			refuse(n, -EOPNOTSUPP,
			       "the clsact %s of ifindex %u has no place for natra's filter: %s (%s)",
			       name_of(hook), hook->ifindex, strerror(-r),
			       nl->extack));
	return r < 0 ? fail_errno(n, r,
				  "attach to the clsact %s of ifindex %u (%s)",
				  name_of(hook), hook->ifindex, nl->extack)
		     : 0;
}

/* A filter that is looked for, and what was found. */
struct own_filter {
	uint32_t prog_id;
	struct hook_program found; /* prog_id 0: nothing */
};

/* Returns whether an answer says that there is no such filter, qdisc or interface. Filters of another
 * kind or protocol may have its priority; and a hook that shares its filters has none of natra's, since
 * it can share only while it is empty. */
static bool is_missing(int r)
{
	return r == -ENOENT || r == -ENODEV || r == -EINVAL || r == -ENOSPC ||
	       r == -EOPNOTSUPP;
}

static int note_own(void *arg, const struct hook_program *program)
{
	struct own_filter *own = arg;

	if (program->prog_id == own->prog_id)
		own->found = *program;
	return 0;
}

/* Looks for the filter that hook_clsact_attach made for a program, by its number and not in a
 * list, which others can make long. Returns 1, or 0 if it is not there. */
static int find_own(struct natra *n, struct netlink *nl,
		    const struct hook *hook, uint32_t prog_id,
		    struct hook_program *ret_program)
{
	static const uint32_t priorities[] = {FRONT_PRIORITY, OWN_PRIORITY};
	struct own_filter own = {.prog_id = prog_id};

	for (size_t i = 0; i < 2; i++) {
		cleanup_nlmsg struct nl_msg *msg = filter_message(
			RTM_GETTFILTER, 0, hook, prog_id, priorities[i]);
		struct list_filters one = {.cb = note_own, .arg = &own};
		int r = msg ? netlink_request(nl, msg, read_filter, &one)
			    : -ENOMEM;

		if (own.found.prog_id) {
			*ret_program = own.found;
			return 1;
		}
		if (r < 0 && !is_missing(r))
			return fail_errno(
				n, r, "look for the %s filter of ifindex %u",
				name_of(hook), hook->ifindex);
	}
	return 0;
}

/* Returns 1 if a filter of natra's can have this priority, and 0 if not. The kernel looks for a filter
 * there by the rules by which it adds one. */
static int has_priority(struct natra *n, struct netlink *nl,
			const struct hook *hook, uint32_t priority)
{
	cleanup_nlmsg struct nl_msg *msg =
		filter_message(RTM_GETTFILTER, 0, hook, 0, priority);
	struct list_filters there = {.cb = is_any};
	int r = msg ? netlink_request(nl, msg, NULL, NULL) : -ENOMEM;

	if (r == 0 || r == -ENOENT)
		return 1;
	if (!is_missing(r))
		return fail_errno(n, r, "look at the %s filters of ifindex %u",
				  name_of(hook), hook->ifindex);
	if (r != -EINVAL)
		return 0;
	/* It says that of a hook without any filter as well. */
	r = list_filters(n, hook, priority, &there);
	return r < 0 ? r : there.count == 0;
}

int hook_clsact_check_place(struct natra *n, struct netlink *nl,
			    const struct hook *hook, const char *ifname)
{
	struct list_filters in_front = {.cb = is_in_front};
	struct qdisc qdisc;
	int r = qdisc_get(n, nl, hook->ifindex, TC_H_CLSACT, &qdisc);

	if (r < 0 || !qdisc.kind[0])
		return r;
	if (strcmp(qdisc.kind, "clsact") != 0)
		return refuse(n, -EOPNOTSUPP, "'%s' has the qdisc '%s'", ifname,
			      qdisc.kind);
	r = has_priority(n, nl, hook, OWN_PRIORITY);
	if (r == 0) {
		r = list_filters(n, hook, FRONT_PRIORITY, &in_front);
		if (r == 1 || in_front.is_cut)
			r = has_priority(n, nl, hook, FRONT_PRIORITY);
	}
	if (r == 0)
		return refuse(
			n, -EOPNOTSUPP,
			"the clsact %s of '%s' has no place for natra's filter",
			name_of(hook), ifname);
	return r < 0 ? r : 0;
}

int hook_clsact_find(struct natra *n, const struct hook *hook, uint32_t prog_id,
		     struct hook_program *ret_program)
{
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(n, &nl);

	return r < 0 ? r : find_own(n, &nl, hook, prog_id, ret_program);
}

int hook_clsact_detach(struct natra *n, struct netlink *nl,
		       const struct hook *hook, uint32_t prog_id)
{
	cleanup_nlmsg struct nl_msg *msg = NULL;
	struct hook_program own;
	int r = find_own(n, nl, hook, prog_id, &own);

	if (r != 1)
		return r;
	msg = filter_message(RTM_DELTFILTER, 0, hook, prog_id, own.priority);
	r = msg ? netlink_request(nl, msg, NULL, NULL) : -ENOMEM;
	if (r < 0 && !is_missing(r))
		return fail_errno(n, r, "remove the %s filter of ifindex %u",
				  name_of(hook), hook->ifindex);
	return 0;
}
