/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of a pod that a cached result describes, and its network namespace. Both may
 * be others by now: a process in the pod renames eth0 and gives another interface its name,
 * and a namespace whose path is that of a process is another one when the number of the
 * process is used again.
 */
#ifndef NATRA_PODS_INTERFACE_H
#define NATRA_PODS_INTERFACE_H

#include <net/if.h>

#include <natra/natra.h>

#include "cached.h"
#include "links.h"

/* Room for why an interface was refused. */
#define INTERFACE_WHY_MAX 256

struct pod_interface {
	char ifname[IF_NAMESIZE]; /* that it has now */
	uint32_t ifindex;         /* its own; 0: it is not known */
};

/*
 * Finds the interface in the namespace that the descriptor is of:
 *
 * - The result names a veth that is on the node: it is the other end of that, whatever its
 *   name, MAC and addresses are. KubeVirt makes eth0 a port of a bridge in the pod and gives
 *   its name, MAC and address to a dummy. No process in a pod can forge this.
 * - Else it is the one with the MAC of the result, or, where the result has none, with the
 *   first of its addresses: the one that has the name, if it does, or else the only one. It
 *   has to lead out of the pod, and to be the only one that does, but for those that the
 *   container's other cached results below the root name.
 *
 * Returns 0; -EBADE, and why, if there is none such; -E2BIG, and why, if the pod has too many to
 * look at; -ENODEV if there is no interface at all, as when the pod has ended; or another
 * -errno, and why.
 */
int interface_find(int root_fd, const struct cached *cached, struct natra *n,
		   int netns_fd, struct pod_interface *ret, char *ret_why);

typedef int (*interface_fn)(void *arg, const struct pod_link *link,
			    const char *to);
/* Calls fn, until that returns other than 0, for each interface that leads out of the pod and
 * that none of the container's cached results names, with the interface of the node or the
 * device to which it leads; "": that has no name. Returns what fn did, 0, -E2BIG if the pod has
 * too many to look at, or another -errno. */
int interface_foreach_unnamed(int root_fd, const struct cached *cached,
			      int netns_fd, interface_fn fn, void *arg);

/* Checks that what is attached at the target is that interface: the pod's processes may have
 * changed what has the name meanwhile. Returns as interface_find does. */
int interface_confirm(const struct pod_interface *interface, struct natra *n,
		      const struct natra_target *target, char *ret_why);

/* Returns -EBADE, and why, if the descriptor is of the namespace of this process or of
 * process 1: no pod is there, and what its eth0 sends is the node's. */
int interface_check_netns(const struct cached *cached, int netns_fd,
			  char *ret_why);

#endif
