/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file leftovers.h
 * @brief What upstream's `bandwidth` plugin left on interfaces. natra.h includes this.
 */
#ifndef NATRA_LEFTOVERS_H
#define NATRA_LEFTOVERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <natra/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct natra;
struct natra_target;

/** Objects that upstream's `bandwidth` plugin left on an interface's host side. */
struct natra_leftovers {
	size_t sz;
	char host_ifname[16]; /**< "" if there is no host-side peer */
	/** "" also if that does not exist: the redirect then drops all that the pod sends. */
	char ifb_ifname[16];
	uint64_t waiting_ns; /**< in the longer queue; 0 if under 100 ms */
	bool limits_ingress; /**< by a root qdisc: a tbf, or see `is_htb` */
	bool limits_egress; /**< by an ingress qdisc that redirects to `ifb_ifname` */
	bool is_htb; /**< the root qdisc is the htb of the plugin's versions 1.5.0 and 1.5.1 */
	uint8_t reserved[5]; /**< 0 */
};

/**
 * @brief Find what upstream's `bandwidth` plugin left on the host side of an
 *        interface: its limits apply beside natra's until they are removed.
 *
 * natra recognises the tbf at the root of the host-side veth by its handle, the htb of
 * versions 1.5.0 and 1.5.1 also by its classes, and a u32 filter on its ingress qdisc if it
 * redirects to an ifb with a name of the plugin's (or Calico's), or to one that is gone.
 *
 * @param target         `ifname` and its netns; or `id` alone, of what natra has attached.
 * @param ret_leftovers  `sz` set by the caller. All false if there is nothing,
 *                       and if the interface has no peer in the caller's netns.
 * @return 0; -EINVAL; -ENODEV no such interface; -ENOENT no such netns or id; -EBADE see
 *         NATRA_CODE_OTHER_INTERFACE; -EPERM; -ENOMEM; others as the kernel returned them.
 */
NATRA_API int natra_find_leftovers(struct natra *n,
				   const struct natra_target *target,
				   struct natra_leftovers *ret_leftovers);

/**
 * @brief Let pass what waits in the limits that natra_find_leftovers finds.
 *
 * To be called before natra_remove_leftovers, which drops what waits: a TCP connection of which
 * seconds wait there would stand still for as long. natra's own limits, if there are any by the
 * `id`, do not hold meanwhile, since they would drop it, too. If the process is killed,
 * natra_check tells that they do not hold, and natra_gc gives them back; so does
 * natra_remove_leftovers, natra_configure or natra_upgrade with the same id.
 *
 * Each tbf gets a bucket of 512 MB, which is what containerd asks for when a pod starts, at
 * most three times, and keeps its rate; its peak rate, which counts that, is replaced. An
 * htb has a higher rate for as long as the call lasts. The call returns when 32 times as much as
 * waited has passed (128 to 256 MB), because senders need some round trips to measure that
 * the queue is gone, and after 1 s in any case. What follows should follow at once.
 * If `waiting_ns` is 0, it only gives an htb its own rate back that a killed process has left
 * raised.
 *
 * @param target  as in natra_find_leftovers.
 * @return as natra_find_leftovers; -EBUSY a lock; -ECANCELED; -ESTALE.
 */
NATRA_API int natra_drain_leftovers(struct natra *n,
				    const struct natra_target *target);

/**
 * @brief Remove what natra_find_leftovers finds, and the ifb.
 *
 * Succeeds when there is nothing. The ingress qdisc stays if another filter is
 * on it. natra's own limits hold before anything is removed.
 *
 * @param target  as in natra_find_leftovers.
 * @return as natra_find_leftovers; -EBUSY a lock; -ESTALE.
 */
NATRA_API int natra_remove_leftovers(struct natra *n,
				     const struct natra_target *target);

#ifdef __cplusplus
}
#endif

#endif
