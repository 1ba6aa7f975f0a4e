/* SPDX-License-Identifier: BSD-2-Clause */
/* The interfaces of a pod's network namespace and where they lead, as the kernel tells it. A
 * process in the pod can make any number of them, so lists end after LINKS_MAX. */
#ifndef NATRA_PODS_LINKS_H
#define NATRA_PODS_LINKS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netlink/netlink.h>

/* The most interfaces, and the most addresses, of a namespace that are looked at. */
#define LINKS_MAX 1024

/* Sockets in two namespaces: that of the pod, and this process's own, the node's. */
struct pod_net {
	struct nl_sock *pod, *node;
};

/* Where packets go that the pod sends by an interface. */
enum link_leads {
	LINK_STAYS, /* nowhere but to the pod, or where another interface leads */
	LINK_TO_NODE, /* what is below it, or its other end, is on the node */
	LINK_IS_DEVICE, /* it is on a bus of the machine, and not made by software alone */
};

struct pod_link {
	char ifname[IF_NAMESIZE];
	char kind[IF_NAMESIZE]; /* "veth" and so on; "": none */
	char mac[3 * 32];       /* "": none */
	char device[64];        /* its name on its bus, or "" */
	uint32_t ifindex;
	uint32_t
		below; /* the index of what is below it, or of its other end; 0: none */
	int nsid; /* of the namespace that `below` is in; -1: its own */
	enum link_leads leads;
	bool is_named; /* a cached result says that the runtime made it, see named.h */
};

struct pod_links {
	struct pod_link items[LINKS_MAX];
	size_t len;
};

/* Opens both sockets. Returns 0 or -errno; links_close is needed in each case. */
int links_open(struct pod_net *ret, int netns_fd);
void links_close(struct pod_net *net);
#define cleanup_pod_net __attribute__((cleanup(links_close)))

/* Lists the interfaces of the pod. Returns 0; -E2BIG if there are more than LINKS_MAX, and
 * then the sockets can only be closed; or another -errno. */
int links_list(const struct pod_net *net, struct pod_links *ret);

/* Finds the interfaces of the pod that have an address, up to `max`. Returns how many there are,
 * or as links_list does. */
int links_with_address(const struct pod_net *net, const char *address,
		       uint32_t *ret_ifindex, int max);

/* Returns the index of the other end of a pair of which one end is on the node, and has this
 * name and the index *ret_host, which may be NULL; 0: there is no such pair. */
uint32_t links_other_end(const struct pod_net *net, const char *host,
			 uint32_t *ret_host);

/* Writes the name of the interface of this index in the namespace of a socket, or "". */
void links_name(struct nl_sock *sock, uint32_t ifindex, char *ret);

#endif
