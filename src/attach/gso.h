/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How large the packets of local TCP streams are where egress is paced. A stream
 * keeps two of them in the queue; at 64 kB each, 8 streams at 1 Mbit/s are more
 * than the horizon holds, are refused in turns, and share by chance. So at low
 * rates the interface's gso_max_segs is less (policy_gso_segs). It tunes, it
 * limits nothing: no call fails for it.
 */
#ifndef NATRA_ATTACH_GSO_H
#define NATRA_ATTACH_GSO_H

#include <stdint.h>

#include "kernel/netlink.h"
#include "state/record.h"

/*
 * In the namespace of the interface: from what natra once put there to what
 * shall be, both 0 for what the kernel begins with. What somebody else has set
 * is left.
 */
void gso_change(struct natra *n, struct netlink *nl, uint32_t ifindex,
		uint32_t from, uint32_t to);

/* The same for the pod of a record, from anywhere. */
void gso_change_in(struct natra *n, const struct meta_link *pod, uint32_t from,
		   uint32_t to);

#endif
