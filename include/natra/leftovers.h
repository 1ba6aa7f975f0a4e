/* SPDX-License-Identifier: BSD-2-Clause */
/**
 * @file leftovers.h
 * @brief The struct of natra_find_leftovers. types.h includes this.
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

/** Objects that upstream's `bandwidth` plugin left on an interface's host side. */
struct natra_leftovers {
	size_t sz;
	char host_ifname[16]; /**< "" if there is no host-side peer */
	bool tbf; /**< a root qdisc that limits ingress: a tbf, or see `htb` */
	bool ingress_redirect; /**< to `ifb_ifname`, by an ingress qdisc: limits egress */
	/** "" also if that does not exist: the redirect then drops all that the pod sends. */
	char ifb_ifname[16];
	uint32_t waiting_ms; /**< in the longer queue; 0 if under 100 */
	bool htb; /**< the root qdisc is the htb of the plugin's versions 1.5.0 and 1.5.1 */
};

#ifdef __cplusplus
}
#endif

#endif
