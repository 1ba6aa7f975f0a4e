/* SPDX-License-Identifier: BSD-2-Clause */
#include "links.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/route/link.h>

#include "../../src/util/rtnl.h"
#include "../common/text.h"

#define OWN_NETNS "/proc/self/ns/net"

#ifndef RTEXT_FILTER_SKIP_STATS
#define RTEXT_FILTER_SKIP_STATS (1 << 3)
#endif

/* A socket stays in the namespace in which it was opened. */
struct opening {
	int netns_fd;
	struct nl_sock **ret;
	int r;
};

/* Runs on a thread of its own, which ends in the pod's namespace. */
static void *open_there(void *arg)
{
	struct opening *opening = arg;

	opening->r = setns(opening->netns_fd, CLONE_NEWNET) < 0
			     ? -errno
			     : rtnl_sock_open(opening->ret);
	return NULL;
}

int links_open(struct pod_net *ret, int netns_fd)
{
	struct opening opening = {.netns_fd = netns_fd, .ret = &ret->pod};
	pthread_t thread;
	int r;

	*ret = (struct pod_net){0};
	r = rtnl_sock_open(&ret->node);
	if (r == 0)
		r = -pthread_create(&thread, NULL, open_there, &opening);
	if (r < 0)
		return r;
	(void)pthread_join(thread, NULL);
	return opening.r;
}

void links_close(struct pod_net *net)
{
	nl_socket_free(net->pod);
	nl_socket_free(net->node);
}

/* An answer of the kernel in one or more messages, which ends early if `read` returns
 * -errno. */
struct dump {
	int (*read)(struct nl_msg *msg, void *arg);
	void *arg;
	int r; /* 1: the end has not come */
};

static int on_message(struct nl_msg *msg, void *arg)
{
	struct dump *dump = arg;
	int r = dump->read(msg, dump->arg);

	if (r == 0)
		return NL_OK;
	dump->r = r;
	return NL_STOP;
}

static int on_end(struct nl_msg *msg, void *arg)
{
	(void)msg;
	((struct dump *)arg)->r = 0;
	return NL_STOP;
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *err, void *arg)
{
	(void)from;
	((struct dump *)arg)->r = err->error < 0 ? err->error : -EIO;
	return NL_STOP;
}

/* Sends a request, which it frees, and reads the answer. */
static int ask(struct nl_sock *sock, struct nl_msg *msg, struct dump *dump)
{
	struct nl_cb *handlers = nl_cb_alloc(NL_CB_DEFAULT);
	int r = msg && handlers ? 0 : -ENOMEM;

	dump->r = 1;
	if (r == 0) {
		nl_cb_set(handlers, NL_CB_VALID, NL_CB_CUSTOM, on_message,
			  dump);
		nl_cb_set(handlers, NL_CB_FINISH, NL_CB_CUSTOM, on_end, dump);
		nl_cb_set(handlers, NL_CB_ACK, NL_CB_CUSTOM, on_end, dump);
		nl_cb_err(handlers, NL_CB_CUSTOM, on_error, dump);
		r = nl_send_auto(sock, msg);
		while (r >= 0 && dump->r == 1)
			r = nl_recvmsgs(sock, handlers);
	}
	if (handlers)
		nl_cb_put(handlers);
	nlmsg_free(msg);
	return dump->r <= 0 ? dump->r : r == -ENOMEM ? -ENOMEM : -EIO;
}

static int take_nsid(struct nl_msg *msg, void *arg)
{
	const struct nlattr *nsid = nlmsg_find_attr(
		nlmsg_hdr(msg), sizeof(struct rtgenmsg), NETNSA_NSID);

	if (nsid)
		*(int *)arg = (int)nla_get_u32(nsid);
	return 0;
}

/* Returns the id by which the pod's namespace knows that of the node; -1: it has none. */
static int ask_nsid(const struct pod_net *net)
{
	struct rtgenmsg gen = {.rtgen_family = AF_UNSPEC};
	cleanup_close int node_fd = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETNSID, NLM_F_REQUEST);
	int nsid = -1;
	struct dump dump = {.read = take_nsid, .arg = &nsid};

	if (node_fd < 0 || !msg ||
	    nlmsg_append(msg, &gen, sizeof(gen), NLMSG_ALIGNTO) < 0 ||
	    nla_put_u32(msg, NETNSA_FD, (uint32_t)node_fd) < 0) {
		nlmsg_free(msg);
		return -1;
	}
	(void)ask(net->pod, msg, &dump);
	return nsid;
}

static void copy_text(char *ret, size_t size, const struct nlattr *attr)
{
	ret[0] = '\0';
	if (attr)
		(void)nla_strlcpy(ret, attr, size);
}

static void copy_mac(struct pod_link *link, const struct nlattr *attr)
{
	const unsigned char *bytes = attr ? nla_data(attr) : NULL;
	const int len = attr ? nla_len(attr) : 0;

	link->mac[0] = '\0';
	for (int i = 0; i < len && 3 * (i + 1) <= (int)sizeof(link->mac); i++)
		(void)snprintf(link->mac + 3 * i - (i > 0), 4,
			       i ? ":%02x" : "%02x", bytes[i]);
}

static uint32_t number(const struct nlattr *attr)
{
	return attr && nla_len(attr) >= (int)sizeof(uint32_t)
		       ? nla_get_u32(attr)
		       : 0;
}

static int read_link(struct nl_msg *msg, void *arg)
{
	const struct nlmsghdr *h = nlmsg_hdr(msg);
	const struct ifinfomsg *info = nlmsg_data(h);
	struct nlattr *attrs[IFLA_MAX + 1], *about[IFLA_INFO_MAX + 1] = {0};
	struct pod_links *links = arg;
	struct pod_link *link = &links->items[links->len];

	if (h->nlmsg_type != RTM_NEWLINK ||
	    nlmsg_parse((struct nlmsghdr *)h, sizeof(*info), attrs, IFLA_MAX,
			NULL) < 0)
		return 0;
	if (links->len == LINKS_MAX)
		return -E2BIG;
	if (attrs[IFLA_LINKINFO])
		(void)nla_parse_nested(about, IFLA_INFO_MAX,
				       attrs[IFLA_LINKINFO], NULL);
	*link = (struct pod_link){
		.ifindex = (uint32_t)info->ifi_index,
		.below = number(attrs[IFLA_LINK]),
		.nsid = attrs[IFLA_LINK_NETNSID]
				? (int)number(attrs[IFLA_LINK_NETNSID])
				: -1,
	};
	copy_text(link->ifname, sizeof(link->ifname), attrs[IFLA_IFNAME]);
	copy_text(link->kind, sizeof(link->kind), about[IFLA_INFO_KIND]);
	copy_text(link->device, sizeof(link->device),
		  attrs[IFLA_PARENT_DEV_NAME]);
	copy_mac(link, attrs[IFLA_ADDRESS]);
	links->len++;
	return 0;
}

/* The list of interfaces has given the node an id, if one of them leads there. */
static void see_where_they_lead(const struct pod_net *net,
				struct pod_links *links)
{
	const int node = ask_nsid(net);

	for (size_t i = 0; i < links->len; i++) {
		struct pod_link *link = &links->items[i];

		if (link->nsid >= 0 && link->nsid == node)
			link->leads = LINK_TO_NODE;
		else if (!link->kind[0] && link->device[0])
			link->leads = LINK_IS_DEVICE;
	}
}

int links_list(const struct pod_net *net, struct pod_links *ret)
{
	struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
	struct nl_msg *msg =
		nlmsg_alloc_simple(RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP);
	struct dump dump = {.read = read_link, .arg = ret};
	int r;

	ret->len = 0;
	if (msg &&
	    (nlmsg_append(msg, &info, sizeof(info), NLMSG_ALIGNTO) < 0 ||
	     nla_put_u32(msg, IFLA_EXT_MASK, RTEXT_FILTER_SKIP_STATS) < 0)) {
		nlmsg_free(msg);
		msg = NULL;
	}
	r = ask(net->pod, msg, &dump);
	if (r == 0)
		see_where_they_lead(net, ret);
	return r;
}

struct holders {
	unsigned char address[sizeof(struct in6_addr)];
	size_t size;
	int seen;
	uint32_t *ifindex;
	int len, max;
};

static int read_address(struct nl_msg *msg, void *arg)
{
	const struct nlmsghdr *h = nlmsg_hdr(msg);
	const struct ifaddrmsg *info = nlmsg_data(h);
	struct nlattr *attrs[IFA_MAX + 1];
	const struct nlattr *local;
	struct holders *holders = arg;

	if (h->nlmsg_type != RTM_NEWADDR ||
	    nlmsg_parse((struct nlmsghdr *)h, sizeof(*info), attrs, IFA_MAX,
			NULL) < 0)
		return 0;
	if (++holders->seen > LINKS_MAX)
		return -E2BIG;
	/* IPv6 has the former only where an address has a peer. */
	local = attrs[IFA_LOCAL] ? attrs[IFA_LOCAL] : attrs[IFA_ADDRESS];
	if (local && holders->len < holders->max &&
	    nla_len(local) == (int)holders->size &&
	    memcmp(nla_data(local), holders->address, holders->size) == 0)
		holders->ifindex[holders->len++] = info->ifa_index;
	return 0;
}

int links_with_address(const struct pod_net *net, const char *address,
		       uint32_t *ret_ifindex, int max)
{
	struct holders holders = {.ifindex = ret_ifindex, .max = max};
	struct ifaddrmsg info = {
		.ifa_family = strchr(address, ':') ? AF_INET6 : AF_INET,
	};
	struct dump dump = {.read = read_address, .arg = &holders};
	struct nl_msg *msg;
	int r;

	if (inet_pton(info.ifa_family, address, holders.address) != 1)
		return 0;
	holders.size = info.ifa_family == AF_INET6 ? sizeof(struct in6_addr)
						   : sizeof(struct in_addr);
	msg = nlmsg_alloc_simple(RTM_GETADDR, NLM_F_REQUEST | NLM_F_DUMP);
	if (msg && nlmsg_append(msg, &info, sizeof(info), NLMSG_ALIGNTO) < 0) {
		nlmsg_free(msg);
		msg = NULL;
	}
	r = ask(net->pod, msg, &dump);
	return r < 0 ? r : holders.len;
}

uint32_t links_other_end(const struct pod_net *net, const char *host,
			 uint32_t *ret_host)
{
	struct rtnl_link *link = NULL;
	const char *kind;
	uint32_t index = 0;

	if (!host[0] || rtnl_link_get_kernel(net->node, 0, host, &link) < 0 ||
	    !link)
		return 0;
	kind = rtnl_link_get_type(link);
	if (kind && (strcmp(kind, "veth") == 0 || strcmp(kind, "netkit") == 0))
		index = (uint32_t)rtnl_link_get_link(link);
	if (ret_host)
		*ret_host = (uint32_t)rtnl_link_get_ifindex(link);
	rtnl_link_put(link);
	return index;
}

void links_name(struct nl_sock *sock, uint32_t ifindex, char *ret)
{
	struct rtnl_link *link = NULL;

	ret[0] = '\0';
	if (!ifindex ||
	    rtnl_link_get_kernel(sock, (int)ifindex, NULL, &link) < 0 || !link)
		return;
	(void)snprintf(ret, IF_NAMESIZE, "%s", rtnl_link_get_name(link));
	rtnl_link_put(link);
}
