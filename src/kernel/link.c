/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/link.h"

#include <errno.h>
#include <limits.h>
#include <linux/if_arp.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <netlink/errno.h>
#include <netlink/route/link.h>
#include <netlink/utils.h>
#include <string.h>

#include "util/str.h"

static int errno_of(int nle)
{
	switch (-nle) {
	case NLE_OBJ_NOTFOUND:
	case NLE_NODEV:
		return -ENODEV;
	case NLE_PERM:
	case NLE_NOACCESS:
		return -EPERM;
	case NLE_NOMEM:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

static bool has_ethernet(uint16_t arp_type)
{
	return arp_type == ARPHRD_ETHER || arp_type == ARPHRD_LOOPBACK;
}

/* Returns whether packets of this link type begin with IP at both hooks: the link's own
 * header is not there yet, or no longer. On GRE links they begin with the outer IP
 * header. */
static bool has_ip(uint16_t arp_type)
{
	switch (arp_type) {
	case ARPHRD_NONE: /* tun, WireGuard */
	case ARPHRD_RAWIP:
	case ARPHRD_PPP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		return true;
	default:
		return false;
	}
}

static int get_link(struct netlink *nl, int ifindex, const char *ifname,
		    struct link_info *ret_link)
{
	struct link_info info = {.peer_nsid = -1};
	struct rtnl_link *link = NULL;
	int r;

	r = rtnl_link_get_kernel(nl->sock, ifindex, ifname, &link);
	if (r < 0)
		return errno_of(r);
	/* libnl returns success, too, if the answer was about something
	 * else. */
	if (!link)
		return -EIO;
	info.ifindex = (uint32_t)rtnl_link_get_ifindex(link);
	(void)str_copy(info.ifname, sizeof(info.ifname),
		       rtnl_link_get_name(link));
	(void)str_copy(info.kind, sizeof(info.kind), rtnl_link_get_type(link));
	info.arp_type = (uint16_t)rtnl_link_get_arptype(link);
	info.has_l2 = has_ethernet(info.arp_type);
	info.peer_ifindex = (uint32_t)rtnl_link_get_link(link);
	if (rtnl_link_get_link_netnsid(link, &info.peer_nsid) < 0)
		info.peer_nsid = -1;
	if (rtnl_link_get_gso_max_segs(link, &info.gso_max_segs) < 0)
		info.gso_max_segs = 0;
	info.tx_queues = rtnl_link_get_num_tx_queues(link);
	info.rx_bytes = rtnl_link_get_stat(link, RTNL_LINK_RX_BYTES);
	info.rx_packets = rtnl_link_get_stat(link, RTNL_LINK_RX_PACKETS);
	info.tx_bytes = rtnl_link_get_stat(link, RTNL_LINK_TX_BYTES);
	info.tx_packets = rtnl_link_get_stat(link, RTNL_LINK_TX_PACKETS);
	rtnl_link_put(link);
	*ret_link = info;
	return 0;
}

int link_by_name(struct natra *n, struct netlink *nl, const char *ifname,
		 struct link_info *ret_link)
{
	int r = get_link(nl, 0, ifname, ret_link);

	if (r == -ENODEV)
		return refuse(n, r, "no interface '%s' in this netns", ifname);
	if (r < 0)
		return fail_errno(n, r, "look up interface '%s'", ifname);
	return 0;
}

int link_by_index(struct netlink *nl, uint32_t ifindex,
		  struct link_info *ret_link)
{
	/* The index may come from a pin that anybody wrote, and libnl aborts on
	 * 0. */
	if (ifindex == 0 || ifindex > INT_MAX)
		return -ENODEV;
	return get_link(nl, (int)ifindex, NULL, ret_link);
}

int link_on_record(struct natra *n, struct netlink *nl, uint32_t ifindex,
		   const char *ifname, struct link_info *ret_link)
{
	int r = link_by_index(nl, ifindex, ret_link);

	if (r == -ENODEV)
		return refuse(n, r, "interface '%s' is gone", ifname);
	if (r < 0)
		return fail_errno(n, r, "look up interface '%s'", ifname);
	(void)str_copy(ret_link->ifname, sizeof(ret_link->ifname), ifname);
	return 0;
}

int link_check_type(struct natra *n, const struct link_info *link)
{
	char type[32];

	if (has_ethernet(link->arp_type) || has_ip(link->arp_type))
		return 0;
	return refuse(n, -EOPNOTSUPP,
		      "interface '%s' is of link type %s (%u), not "
		      "Ethernet and not IP",
		      link->ifname,
		      nl_llproto2str(link->arp_type, type, sizeof(type)),
		      link->arp_type);
}

/* Makes a request about a link, without attributes. Returns NULL if there is no
 * memory. */
static struct nl_msg *link_message(int type, uint32_t ifindex)
{
	struct ifinfomsg info = {.ifi_index = (int)ifindex};

	return netlink_message(type, 0, &info, sizeof(info));
}

int link_set_gso_max_segs(struct natra *n, struct netlink *nl, uint32_t ifindex,
			  uint32_t segs)
{
	cleanup_nlmsg struct nl_msg *msg = link_message(RTM_NEWLINK, ifindex);
	int r;

	if (!msg || nla_put_u32(msg, IFLA_GSO_MAX_SEGS, segs) < 0)
		return fail_errno(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, NULL, NULL);
	if (r < 0 && r != -ENODEV)
		return fail_errno(n, r, "set gso_max_segs of ifindex %u (%s)",
				  ifindex, nl->extack);
	return 0;
}

int link_remove(struct natra *n, struct netlink *nl, uint32_t ifindex)
{
	cleanup_nlmsg struct nl_msg *msg = link_message(RTM_DELLINK, ifindex);
	int r;

	if (!msg)
		return fail_errno(n, -ENOMEM, "netlink message");
	r = netlink_request(nl, msg, NULL, NULL);
	if (r < 0 && r != -ENODEV)
		return fail_errno(n, r, "remove interface %u (%s)", ifindex,
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

/* Returns the id by which the namespace of `nl` knows another one, or -1 if it
 * does not know it. */
static int nsid_of(struct netlink *nl, int netns_fd)
{
	struct rtgenmsg gen = {.rtgen_family = AF_UNSPEC};
	cleanup_nlmsg struct nl_msg *msg =
		netlink_message(RTM_GETNSID, 0, &gen, sizeof(gen));
	int nsid = -1;

	if (!msg || nla_put_u32(msg, NETNSA_FD, (uint32_t)netns_fd) < 0)
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
		return refuse(n, -EOPNOTSUPP,
			      "interface '%s' has no host-side veth",
			      pod->ifname);
	r = link_by_index(nl, pod->peer_ifindex, &peer);
	if (r < 0 && r != -ENODEV)
		return fail_errno(n, r, "look up the peer of '%s'",
				  pod->ifname);
	if (pod_netns_fd >= 0)
		nsid = nsid_of(nl, pod_netns_fd);
	/* The index alone proves nothing: an unrelated interface in this namespace may
	 * have it. */
	if (r == -ENODEV || strcmp(peer.kind, "veth") != 0 ||
	    peer.peer_ifindex != pod->ifindex || peer.peer_nsid != nsid ||
	    (pod_netns_fd >= 0 && nsid < 0))
		return refuse(
			n, -EOPNOTSUPP,
			"the peer of interface '%s' is not in this network namespace",
			pod->ifname);
	*ret_peer = peer;
	return 0;
}
