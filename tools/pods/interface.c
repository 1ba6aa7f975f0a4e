/* SPDX-License-Identifier: BSD-2-Clause */
#include "interface.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>

#include "../common/text.h"

#define OWN_NETNS  "/proc/self/ns/net"
#define INIT_NETNS "/proc/1/ns/net"

/* What is known of the interface, and where it is looked for. */
struct search {
	const struct cached *cached;
	struct natra *n;
	int netns_fd;
	struct nl_sock *pod, *node;
	char mac[64];     /* "": the result has none */
	char address[64]; /* the same; without the length of its prefix */
	struct pod_interface *found;
	char *why;
};

__attribute__((format(printf, 3, 4))) static int
refuse_interface(char *why, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why, INTERFACE_WHY_MAX, format, args);
	va_end(args);
	return r;
}

static bool is_same(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int interface_check_netns(const struct cached *cached, int netns_fd,
			  char *ret_why)
{
	/* Without the node's processes in /proc, process 1 is one of this container. */
	if (!is_same(netns_fd, OWN_NETNS) && !is_same(netns_fd, INIT_NETNS))
		return 0;
	return refuse_interface(
		ret_why, -EBADE,
		"netns: '%s' of the cached result is the node's own",
		cached->netns);
}

/* Opens a socket, which stays in the namespace in which it was opened. */
static int open_socket(struct nl_sock **ret)
{
	*ret = nl_socket_alloc();
	return *ret && nl_connect(*ret, NETLINK_ROUTE) == 0 ? 0 : -ENOMEM;
}

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
			     : open_socket(opening->ret);
	return NULL;
}

static int open_sockets(struct search *s)
{
	struct opening opening = {.netns_fd = s->netns_fd, .ret = &s->pod};
	pthread_t thread;
	int r = open_socket(&s->node);

	if (r == 0)
		r = -pthread_create(&thread, NULL, open_there, &opening);
	if (r < 0)
		return r;
	(void)pthread_join(thread, NULL);
	return opening.r;
}

static const char *text_at(const cJSON *object, const char *key)
{
	const char *text = json_text(json_get_exact(object, key));

	return text ? text : "";
}

static const cJSON *result_at(const struct search *s, const char *key)
{
	return json_get_exact(json_get_exact(s->cached->json, "result"), key);
}

/* Reads the MAC of the interface, and the first address that is its own or nobody's. */
static void read_result(struct search *s)
{
	const cJSON *item;
	int index = 0, own = -1;

	cJSON_ArrayForEach(item, result_at(s, "interfaces"))
	{
		if (text_at(item, "sandbox")[0] &&
		    strcmp(text_at(item, "name"), s->cached->ifname) == 0) {
			own = index;
			(void)snprintf(s->mac, sizeof(s->mac), "%s",
				       text_at(item, "mac"));
		}
		index++;
	}
	cJSON_ArrayForEach(item, result_at(s, "ips"))
	{
		const cJSON *of = json_get_exact(item, "interface");
		const char *address = text_at(item, "address");

		if (s->address[0] ||
		    (cJSON_IsNumber(of) && of->valueint != own))
			continue;
		(void)snprintf(s->address, sizeof(s->address), "%.*s",
			       (int)strcspn(address, "/"), address);
	}
}

/* Asks for the end on the node of the pod's interface that has this name; "": none. */
static int ask_host(const struct search *s, const char *ifname, char *ret_host)
{
	struct natra_target target = NATRA_INIT(target);
	struct natra_leftovers left = NATRA_INIT(left);
	int r;

	target.ifname = ifname;
	target.netns_fd = s->netns_fd;
	r = natra_find_leftovers(s->n, &target, &left);
	if (r < 0)
		return refuse_interface(s->why, r, "%s", natra_error(s->n));
	(void)snprintf(ret_host, IF_NAMESIZE, "%s", left.host_ifname);
	return 0;
}

static bool is_kind(struct rtnl_link *link, const char *kind)
{
	const char *type = rtnl_link_get_type(link);

	return type && strcmp(type, kind) == 0;
}

static int take(const struct search *s, const char *ifname, int index)
{
	(void)snprintf(s->found->ifname, IF_NAMESIZE, "%s", ifname);
	s->found->ifindex = (uint32_t)index;
	return 0;
}

/* Finds the interface whose other end the result names. Returns 1 if there is one, 0 if the
 * result names none that is on the node. */
static int find_by_host(const struct search *s, const char *host)
{
	struct rtnl_link *link = NULL;
	char ifname[IF_NAMESIZE] = "", found[IF_NAMESIZE] = "";
	int index = 0, r = 0;

	if (!host[0] || rtnl_link_get_kernel(s->node, 0, host, &link) < 0 ||
	    !link)
		return 0;
	if (is_kind(link, "veth"))
		index = rtnl_link_get_link(link);
	rtnl_link_put(link);
	if (!index)
		return 0;
	link = NULL;
	if (rtnl_link_get_kernel(s->pod, index, NULL, &link) == 0 && link) {
		(void)snprintf(ifname, sizeof(ifname), "%s",
			       rtnl_link_get_name(link));
		rtnl_link_put(link);
		r = ask_host(s, ifname, found);
	}
	if (r < 0)
		return r;
	/* Another interface may have the index. */
	if (strcmp(found, host) != 0)
		return refuse_interface(
			s->why, -EBADE,
			"the other end of '%s', which is the pod's '%s' in the cached result, is not in its network namespace",
			host, s->cached->ifname);
	(void)take(s, ifname, index);
	return 1;
}

static int find_by_hosts(const struct search *s)
{
	const cJSON *item;
	int r = 0;

	cJSON_ArrayForEach(item, result_at(s, "interfaces"))
	{
		if (r == 0 && !text_at(item, "sandbox")[0])
			r = find_by_host(s, text_at(item, "name"));
	}
	return r;
}

static bool has_mac(const struct search *s, struct rtnl_link *link)
{
	char mac[64] = "";
	const struct nl_addr *address = rtnl_link_get_addr(link);

	if (address)
		(void)nl_addr2str(address, mac, sizeof(mac));
	return strcasecmp(mac, s->mac) == 0;
}

static bool has_address(const struct search *s, struct nl_cache *addresses,
			struct rtnl_link *link)
{
	struct nl_object *o;
	bool found = false;

	for (o = nl_cache_get_first(addresses); o && !found;
	     o = nl_cache_get_next(o)) {
		struct rtnl_addr *a = (struct rtnl_addr *)o;
		const struct nl_addr *local = rtnl_addr_get_local(a);
		unsigned char wanted[sizeof(struct in6_addr)];

		found = local &&
			rtnl_addr_get_ifindex(a) ==
				rtnl_link_get_ifindex(link) &&
			inet_pton(nl_addr_get_family(local), s->address,
				  wanted) == 1 &&
			memcmp(nl_addr_get_binary_addr(local), wanted,
			       nl_addr_get_len(local)) == 0;
	}
	return found;
}

/* Returns the interface that has what the result says of it: the one that has the name, or
 * else the only one. */
static struct rtnl_link *choose(const struct search *s, struct nl_cache *links,
				struct nl_cache *addresses)
{
	struct rtnl_link *found = NULL;
	unsigned int count = 0;
	struct nl_object *o;

	for (o = nl_cache_get_first(links); o; o = nl_cache_get_next(o)) {
		struct rtnl_link *link = (struct rtnl_link *)o;
		const bool has_name = strcmp(rtnl_link_get_name(link),
					     s->cached->ifname) == 0;

		if (s->mac[0]       ? !has_mac(s, link)
		    : s->address[0] ? !has_address(s, addresses, link)
				    : !has_name)
			continue;
		if (has_name)
			return link;
		found = link;
		count++;
	}
	return count == 1 ? found : NULL;
}

static int take_nsid(struct nl_msg *msg, void *arg)
{
	const struct nlattr *nsid = nlmsg_find_attr(
		nlmsg_hdr(msg), sizeof(struct rtgenmsg), NETNSA_NSID);

	if (nsid)
		*(int *)arg = (int)nla_get_u32(nsid);
	return NL_OK;
}

/* Returns the id by which the pod's namespace knows that of the node; -1: it has none. */
static int ask_nsid(const struct search *s)
{
	struct rtgenmsg gen = {.rtgen_family = AF_UNSPEC};
	cleanup_close int node_fd = open(OWN_NETNS, O_RDONLY | O_CLOEXEC);
	struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETNSID, 0);
	int nsid = -1;

	if (node_fd >= 0 && msg &&
	    nlmsg_append(msg, &gen, sizeof(gen), NLMSG_ALIGNTO) == 0 &&
	    nla_put_u32(msg, NETNSA_FD, (uint32_t)node_fd) == 0 &&
	    nl_socket_modify_cb(s->pod, NL_CB_VALID, NL_CB_CUSTOM, take_nsid,
				&nsid) == 0 &&
	    nl_send_auto(s->pod, msg) >= 0)
		(void)nl_wait_for_ack(s->pod);
	nlmsg_free(msg);
	return nsid;
}

/* Returns whether packets leave the pod by an interface: it is a device, or the one below it,
 * or its other end, is on the node. A process in the pod can make one of any kind, but only
 * above what it has itself. */
static bool leads_out(const struct search *s, struct rtnl_link *link)
{
	int nsid;

	if (!rtnl_link_get_type(link))
		return !(rtnl_link_get_flags(link) & IFF_LOOPBACK);
	return rtnl_link_get_link_netnsid(link, &nsid) == 0 && nsid >= 0 &&
	       nsid == ask_nsid(s);
}

/* Refuses what leads nowhere: a process in the pod can have made it. */
static int take_chosen(const struct search *s, struct rtnl_link *link)
{
	const char *ifname = rtnl_link_get_name(link);

	if (!leads_out(s, link))
		return refuse_interface(
			s->why, -EBADE,
			"interface '%s' does not lead out of the pod, so it is not the one that the runtime made",
			ifname);
	return take(s, ifname, rtnl_link_get_ifindex(link));
}

static int find_by_looks(const struct search *s)
{
	struct nl_cache *links = NULL, *addresses = NULL;
	struct rtnl_link *link;
	int r;

	if (rtnl_link_alloc_cache(s->pod, AF_UNSPEC, &links) < 0 ||
	    rtnl_addr_alloc_cache(s->pod, &addresses) < 0) {
		nl_cache_free(links);
		return refuse_interface(
			s->why, -EIO, "the pod's interfaces cannot be listed");
	}
	link = choose(s, links, addresses);
	/* The loopback interface is always there. */
	if (!link && nl_cache_nitems(links) <= 1)
		r = refuse_interface(s->why, -ENODEV, "no interface '%s'",
				     s->cached->ifname);
	else if (!link)
		r = refuse_interface(
			s->why, -EBADE,
			"no interface of the pod has the %s %s of the cached result",
			s->mac[0]       ? "MAC"
			: s->address[0] ? "address"
					: "name",
			s->mac[0]       ? s->mac
			: s->address[0] ? s->address
					: s->cached->ifname);
	else
		r = take_chosen(s, link);
	nl_cache_free(links);
	nl_cache_free(addresses);
	return r;
}

int interface_find(const struct cached *cached, struct natra *n, int netns_fd,
		   struct pod_interface *ret, char *ret_why)
{
	struct search s = {
		.cached = cached,
		.n = n,
		.netns_fd = netns_fd,
		.found = ret,
		.why = ret_why,
	};
	int r = open_sockets(&s);

	if (r < 0)
		r = refuse_interface(ret_why, r,
				     "enter the pod's network namespace: %s",
				     strerror(-r));
	if (r == 0)
		r = find_by_hosts(&s);
	if (r == 0) {
		read_result(&s);
		r = find_by_looks(&s);
	}
	nl_socket_free(s.pod);
	nl_socket_free(s.node);
	return r < 0 ? r : 0;
}

int interface_confirm(const struct pod_interface *interface, struct natra *n,
		      const struct natra_target *target, char *ret_why)
{
	struct natra_info info = NATRA_INIT(info);
	int r;

	if (!interface->ifindex)
		return 0;
	r = natra_query(n, target->id, &info);
	if (r < 0)
		return refuse_interface(ret_why, r, "%s", natra_error(n));
	if (info.ifindex == interface->ifindex)
		return 0;
	return refuse_interface(
		ret_why, -EBADE,
		"interface '%s' has become another one while it was limited",
		interface->ifname);
}
