/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How large the packets of local TCP streams are. Where egress is paced, a stream keeps
 * two of them in the queue. At 64 kB each, 8 streams at 1 Mbit/s are more than the
 * horizon holds: they are refused in turns and share the rate by chance. Where it is
 * policed in the pod, the kernel aborts connections if the pod can send nothing for
 * 4 s, see GSO_POLICED_NS. At low rates the interface therefore gets a smaller
 * gso_max_segs (policy_gso_segs). This only tunes and enforces no limit, so no call
 * fails because of it.
 */
#ifndef NATRA_ATTACH_GSO_H
#define NATRA_ATTACH_GSO_H

#include <stdint.h>

#include "kernel/netlink.h"
#include "state/record.h"

/* Returns what gso_max_segs shall be under a policy; 0 stands for the kernel's
 * default. */
uint32_t gso_segs(const struct record *record,
		  const struct natra_policy *policy);

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
