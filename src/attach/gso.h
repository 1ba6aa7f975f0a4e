/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How large the packets of local TCP streams are where egress is paced. A
 * stream keeps two of them in the queue. At 64 kB each, 8 streams at 1 Mbit/s
 * are more than the horizon holds: they are refused in turns and share the rate
 * by chance. At low rates the interface therefore gets a smaller gso_max_segs
 * (policy_gso_segs). This tunes and limits nothing, so no call fails because of
 * it.
 */
#ifndef NATRA_ATTACH_GSO_H
#define NATRA_ATTACH_GSO_H

#include <stdint.h>

#include "kernel/netlink.h"
#include "state/record.h"

/*
 * Changes gso_max_segs from what natra once put there to what it shall be; 0
 * stands for the kernel's default in both. A value that another program has set
 * is left. The caller is in the namespace of the interface.
 */
void gso_change(struct natra *n, struct netlink *nl, uint32_t ifindex,
		uint32_t from, uint32_t to);

/* Does the same for the pod's interface on record, from any namespace. */
void gso_change_in(struct natra *n, const struct record_link *pod,
		   uint32_t from, uint32_t to);

#endif
