/* SPDX-License-Identifier: BSD-2-Clause */
/* The fq qdisc at an interface's root, which keeps departure times. */
#ifndef NATRA_KERNEL_QDISC_FQ_H
#define NATRA_KERNEL_QDISC_FQ_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/netlink.h"

/*
 * natra's own root qdisc is known by its handle, so that nothing has to be
 * remembered between adding it and a crash.
 */
#define QDISC_FQ_HANDLE 0x6e610000U /* "na" */

/*
 * fq has a queue for each socket, and for packets without one (and those of UDP
 * sockets that are not connected) this number and 1, by the flow's hash. With
 * the kernel's default of 1023 a mouse often shares one with an elephant: before
 * Linux 6.7 it then waits for the elephant's next departure. A queue takes 128
 * bytes or less, for 3 s after its last packet: 8 MB if a pod uses all of them.
 */
#define QDISC_FQ_ORPHAN_MASK 65535U

/*
 * Puts fq in place of the kernel's default qdisc. If natra's fq is there already
 * with other options, it gets those of this build. Returns 0; -EBUSY
 * if another's qdisc is there, or mq, the default of a device with several
 * transmit queues; -EOPNOTSUPP if this kernel has no fq.
 */
int qdisc_fq_add(struct natra *n, struct netlink *nl, uint32_t ifindex);

/* Returns whether this kernel has fq, which it tries in a network namespace of its own. */
bool qdisc_fq_is_there(struct natra *n);

/* Removes natra's fq; whatever else is at the root is left. */
int qdisc_fq_remove(struct natra *n, struct netlink *nl, uint32_t ifindex);

/* Returns 1, its orphan mask and the name of another option that is not natra's, or NULL, if
 * natra's fq is at the root; 0 if something else is. */
int qdisc_fq_present(struct natra *n, struct netlink *nl, uint32_t ifindex,
		     uint32_t *ret_orphan_mask, const char **ret_changed);

#endif
