/* SPDX-License-Identifier: BSD-2-Clause */
#include "link.h"

#include <errno.h>
#include <limits.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <string.h>

static void read_kind(struct nlattr *attr, struct link_info *info)
{
	struct nlattr *attrs[IFLA_INFO_MAX + 1];

	if (attr && nla_parse_nested(attrs, IFLA_INFO_MAX, attr, NULL) == 0 &&
	    attrs[IFLA_INFO_KIND])
		(void)nla_strlcpy(info->kind, attrs[IFLA_INFO_KIND],
				  sizeof(info->kind));
}

static int read_link(struct nl_msg *msg, void *arg)
{
	const struct nlmsghdr *hdr = nlmsg_hdr(msg);
	struct nlattr *attrs[IFLA_MAX + 1];
	struct link_info info = {0};
	const struct ifinfomsg *ifi;
	uint32_t nsid;

	/* Checks the length, too. */
	if (hdr->nlmsg_type != RTM_NEWLINK ||
	    nlmsg_parse(nlmsg_hdr(msg), sizeof(*ifi), attrs, IFLA_MAX, NULL) <
		    0 ||
	    !attrs[IFLA_IFNAME])
		return 0;
	ifi = nlmsg_data(hdr);
	info.ifindex = (uint32_t)ifi->ifi_index;
	info.has_l2 = ifi->ifi_type == ARPHRD_ETHER ||
		      ifi->ifi_type == ARPHRD_LOOPBACK;
	(void)nla_strlcpy(info.ifname, attrs[IFLA_IFNAME], sizeof(info.ifname));
	read_kind(attrs[IFLA_LINKINFO], &info);
	(void)netlink_get_u32(attrs[IFLA_LINK], &info.peer_ifindex);
	info.peer_nsid = netlink_get_u32(attrs[IFLA_LINK_NETNSID], &nsid)
				 ? (int)nsid
				 : -1;
	*(struct link_info *)arg = info;
	return 0;
}

/* Not by libnl-route, which trusts the kernel to nest what it expects nested. */
static int get_link(struct netlink *nl, uint32_t ifindex, const char *ifname,
		    struct link_info *ret_link)
{
	cleanup_nlmsg struct nl_msg *msg =
		nlmsg_alloc_simple(RTM_GETLINK, NLM_F_REQUEST);
	struct ifinfomsg ifi = {.ifi_index = (int)ifindex};
	struct link_info info = {0};
	int r;

	if (!msg || nlmsg_append(msg, &ifi, sizeof(ifi), NLMSG_ALIGNTO) < 0 ||
	    (ifname && nla_put_string(msg, IFLA_IFNAME, ifname) < 0))
		return -ENOMEM;
	r = netlink_request(nl, msg, read_link, &info);
	if (r < 0)
		return r;
	if (!info.ifindex)
		return -EIO;
	*ret_link = info;
	return 0;
}

int link_by_name(struct natra *n, struct netlink *nl, const char *ifname,
		 struct link_info *ret_link)
{
	int r = get_link(nl, 0, ifname, ret_link);

	if (r == -ENODEV)
		return natra_refuse(n, r, "no interface '%s' in this netns",
				    ifname);
	if (r < 0)
		return natra_fail(n, r, "look up interface '%s'", ifname);
	return 0;
}

int link_by_index(struct netlink *nl, uint32_t ifindex,
		  struct link_info *ret_link)
{
	/* It may come from a pin that anybody wrote. */
	if (ifindex == 0 || ifindex > INT_MAX)
		return -ENODEV;
	return get_link(nl, ifindex, NULL, ret_link);
}

int link_remove(struct natra *n, struct netlink *nl, uint32_t ifindex)
{
	cleanup_nlmsg struct nl_msg *msg =
		nlmsg_alloc_simple(RTM_DELLINK, NLM_F_REQUEST);
	struct ifinfomsg info = {.ifi_index = (int)ifindex};
	int r;

	if (!msg || nlmsg_append(msg, &info, sizeof(info), NLMSG_ALIGNTO) < 0)
		return natra_fail(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, NULL, NULL);
	if (r < 0 && r != -ENODEV)
		return natra_fail(n, r, "remove interface %u (%s)", ifindex,
				  nl->extack);
	return 0;
}

static int read_nsid(struct nl_msg *msg, void *arg)
{
	uint32_t nsid;

	if (netlink_get_u32(nlmsg_find_attr(nlmsg_hdr(msg),
					    sizeof(struct rtgenmsg),
					    NETNSA_NSID),
			    &nsid))
		*(int *)arg = (int)nsid;
	return 0;
}

/* The id by which the namespace of `nl` knows another; -1: it does not. */
static int nsid_of(struct netlink *nl, int netns_fd)
{
	cleanup_nlmsg struct nl_msg *msg =
		nlmsg_alloc_simple(RTM_GETNSID, NLM_F_REQUEST);
	struct rtgenmsg gen = {.rtgen_family = AF_UNSPEC};
	int nsid = -1;

	if (!msg || nlmsg_append(msg, &gen, sizeof(gen), NLMSG_ALIGNTO) < 0 ||
	    nla_put_u32(msg, NETNSA_FD, (uint32_t)netns_fd) < 0)
		return -1;
	if (netlink_request(nl, msg, read_nsid, &nsid) < 0)
		return -1;
	return nsid;
}

int link_host_peer(struct natra *n, struct netlink *nl,
		   const struct link_info *pod, int pod_netns_fd,
		   struct link_info *ret_peer)
{
	struct link_info peer;
	int nsid = -1;
	int r;

	if (strcmp(pod->kind, "veth") != 0 || !pod->peer_ifindex)
		return natra_refuse(n, -EOPNOTSUPP,
				    "interface '%s' has no host-side veth",
				    pod->ifname);
	r = link_by_index(nl, pod->peer_ifindex, &peer);
	if (r < 0 && r != -ENODEV)
		return natra_fail(n, r, "look up the peer of '%s'",
				  pod->ifname);
	if (pod_netns_fd >= 0)
		nsid = nsid_of(nl, pod_netns_fd);
	/* The index alone may be that of a stranger in this namespace. */
	if (r == -ENODEV || strcmp(peer.kind, "veth") != 0 ||
	    peer.peer_ifindex != pod->ifindex || peer.peer_nsid != nsid ||
	    (pod_netns_fd >= 0 && nsid < 0))
		return natra_refuse(
			n, -EOPNOTSUPP,
			"the peer of interface '%s' is not in this network namespace",
			pod->ifname);
	*ret_peer = peer;
	return 0;
}
