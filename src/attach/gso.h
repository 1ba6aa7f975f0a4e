/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How large the packets of local TCP streams are. Where egress is paced, a stream keeps
 * two of them in the queue. At 64 kB each, 8 streams at 1 Mbit/s are more than the
 * horizon holds: they are refused in turns and share the rate by chance. Where it is
 * policed in the pod, the kernel aborts connections if the pod can send nothing for
 * 4 s, see GSO_POLICED_NS. At low rates the interface therefore gets a smaller
 * gso_max_segs (policy_gso_segs). This only tunes and enforces no limit, so no call
 * fails because of it but a detach, which is the last that knows of it.
 */
#ifndef NATRA_ATTACH_GSO_H
#define NATRA_ATTACH_GSO_H

#include <stdint.h>

#include "kernel/netlink.h"
#include "state/pin.h"

/* Returns what gso_max_segs shall be under a policy; 0 stands for the kernel's
 * default. */
uint32_t gso_segs(const struct record *record,
		  const struct natra_policy *policy);

/*
 * Writes into a record, which is not pinned here, what gso_max_segs shall be, and what it
 * may be until it has been changed; `before` is the record that holds until now, which may
 * be the same one. The caller pins the record and changes the interface then: a process
 * may be killed in between, or not find the namespace.
 */
void gso_plan(struct record *record, const struct record *before,
	      uint32_t segs);

/*
 * Changes gso_max_segs of the pod's interface from what natra put there by the record; 0
 * stands for the kernel's default. A value that another program has set is left. The
 * caller is in the namespace of the interface. Returns 0 if it is done.
 */
int gso_change(struct natra *n, struct netlink *nl, const struct record *record,
	       uint32_t to);

/* Ends a change that is planned in a pinned record, if there is one, from any namespace.
 * A change that is not possible now stays planned. hint_fd is a namespace where the pod may
 * be, or -1. */
void gso_settle(struct natra *n, struct pin_gen *gen, int hint_fd);

#endif
