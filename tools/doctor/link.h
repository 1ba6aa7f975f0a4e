/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what the kernel says of an interface in any network namespace. */
#ifndef NATRA_DOCTOR_LINK_H
#define NATRA_DOCTOR_LINK_H

#include <stdbool.h>
#include <stdint.h>

struct link_facts {
	char ifname[16]; /* at present; "": it could not be looked at */
	/* The kind of its root qdisc; below mq, where each queue has one, that of the first which
	 * is not harmless. */
	char qdisc[32];
	uint32_t qdisc_handle;
	uint32_t qdisc_drops;
	uint32_t gso_max_size, gso_max_segs;
	uint32_t gso_ipv4_max_size; /* 0: the kernel does not know it */
	uint32_t mtu;
	/* Packet sockets of its namespace that see all that arrives at it. The kernel
	 * hands packets to them before any hook. */
	uint32_t packet_sockets;
};

/* Returns whether a qdisc neither delays packets nor drops any, except when its queue
 * is full. */
bool link_qdisc_is_harmless(const char *kind);

/* Reads them for an interface in the namespace that the descriptor is of; -1:
 * this process's own. It is the one of that index, or, if the index is 0, the one
 * that has the name. Returns 0 or -errno. */
int link_look(int netns_fd, uint32_t ifindex, const char *ifname,
	      struct link_facts *ret);

#endif
