/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects that upstream's bandwidth plugin left beside an attachment. */
#ifndef NATRA_ATTACH_LEFTOVERS_H
#define NATRA_ATTACH_LEFTOVERS_H

#include "attach/plugin_htb.h"
#include "kernel/link.h"
#include "kernel/qdisc.h"

/* A filter, by what the kernel needs to remove it. */
struct filter {
	uint32_t handle;
	uint32_t info; /* priority and protocol */
	uint32_t to;   /* interface; 0: one that does not exist */
};

/* A qdisc of the plugin's at the root of an interface. */
struct limiting {
	struct qdisc qdisc;    /* tbf or htb; kind "": there is none */
	struct plugin_htb htb; /* of an htb */
	uint64_t bytes_per_sec;
};

struct leftovers {
	struct link_info host; /* ifindex 0: there is no host side here */
	struct limiting root;  /* ingress */
	struct qdisc ingress;
	struct filter redirect; /* handle 0: there is none of the plugin's */
	struct link_info ifb;   /* ifindex 0: it does not exist */
	struct limiting ifb_root;
	bool shared; /* another filter is on `ingress` */
};

/* Looks on the host side of the interface `pod`, which is in the namespace
 * pod_fd (-1: the caller's). Succeeds also if it has no host side. */
int leftovers_find(struct natra *n, struct netlink *nl,
		   const struct link_info *pod, int pod_fd,
		   struct leftovers *ret_leftovers);

/* Returns the code of the error with which attaching to the host side of `pod` has just
 * failed: NATRA_CODE_LEFTOVERS if the qdisc in natra's place, at the root or else at
 * ingress, is one of these and natra's would follow it. */
enum natra_code leftovers_code(struct natra *n, const struct link_info *pod,
			       int pod_fd, bool at_root);

int leftovers_remove(struct natra *n, struct netlink *nl,
		     const struct leftovers *l);

/* Returns for how long packets wait in the plugin's queues at most, or 0 if that
 * is too short for senders to notice when they are lost. */
uint64_t leftovers_wait_ns(const struct leftovers *l);

/* Lets pass what waits in them, see natra_drain_leftovers. */
int leftovers_drain(struct natra *n, struct netlink *nl,
		    const struct leftovers *l);

/* Logs a warning if the plugin left limits on the host side of the interface
 * `pod`, which is in the namespace pod_fd (-1: the caller's). */
void leftovers_warn(struct natra *n, const struct link_info *pod, int pod_fd);

#endif
