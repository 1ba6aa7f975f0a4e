/* SPDX-License-Identifier: BSD-2-Clause */
/* Network interfaces: finding them, their host side, and changing them. */
#ifndef NATRA_KERNEL_LINK_H
#define NATRA_KERNEL_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/netlink.h"

struct link_info {
	uint32_t ifindex;
	char ifname[16];
	char kind[16];         /* "veth", "macvlan", ... or "" */
	uint16_t arp_type;     /* ARPHRD_*, see link_check_type */
	bool has_l2;           /* packets begin with an Ethernet header */
	uint32_t peer_ifindex; /* IFLA_LINK, 0 if there is none */
	int peer_nsid;         /* IFLA_LINK_NETNSID, -1 if there is none */
	uint32_t gso_max_segs; /* of a packet that a local socket makes */
	uint32_t tx_queues;    /* allocated ones; the driver may use less */
	/* What it has carried, without the preamble of a frame and mostly without its
	 * checksum. A packet that is segmented later counts once, with one header. */
	uint64_t rx_bytes, rx_packets;
	uint64_t tx_bytes, tx_packets;
};

/* Finds an interface by its name in the namespace of `nl`. Returns -ENODEV if
 * there is none. */
int link_by_name(struct natra *n, struct netlink *nl, const char *ifname,
		 struct link_info *ret_link);

/* Finds an interface by its index. Returns -ENODEV, without an error text, if
 * there is none. */
int link_by_index(struct netlink *nl, uint32_t ifindex,
		  struct link_info *ret_link);

/* Finds an interface that was called `ifname` once: whatever its name is now,
 * *ret_link has that one. Returns -ENODEV, with an error text, if it is gone. */
int link_on_record(struct natra *n, struct netlink *nl, uint32_t ifindex,
		   const char *ifname, struct link_info *ret_link);

/* Returns -EOPNOTSUPP, with an error text, if the link's packets begin with
 * neither an Ethernet header nor IP: none of them would be limited. */
int link_check_type(struct natra *n, const struct link_info *link);

/* Sets gso_max_segs, which holds for connections that are made from now on. It
 * is no error if the interface is gone. */
int link_set_gso_max_segs(struct natra *n, struct netlink *nl, uint32_t ifindex,
			  uint32_t segs);

/* Removes an interface; it is no error if it is gone. */
int link_remove(struct natra *n, struct netlink *nl, uint32_t ifindex);

/*
 * Finds the veth peer of `pod` in the namespace of `nl`. pod_netns_fd is the
 * pod's namespace, or -1 if it is the same. Returns -EOPNOTSUPP if there is no
 * peer here.
 */
int link_host_peer(struct natra *n, struct netlink *nl,
		   const struct link_info *pod, int pod_netns_fd,
		   struct link_info *ret_peer);

#endif
