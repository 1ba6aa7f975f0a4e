/* SPDX-License-Identifier: BSD-2-Clause */
/* The fq qdisc at an interface's root, which keeps departure times. */
#ifndef NATRA_KERNEL_QDISC_FQ_H
#define NATRA_KERNEL_QDISC_FQ_H

#include <stdint.h>

#include "kernel/netlink.h"

/*
 * natra's own root qdisc is known by its handle, so that nothing has to be
 * remembered between adding it and a crash.
 */
#define QDISC_FQ_HANDLE 0x6e610000U /* "na" */

/*
 * Puts fq in place of the kernel's default qdisc. Returns 0 also if natra's fq
 * is there already; -EBUSY if another's qdisc is there, or mq, the default
 * of a device with several transmit queues; -EOPNOTSUPP if this kernel has no
 * fq.
 */
int qdisc_fq_add(struct natra *n, struct netlink *nl, uint32_t ifindex);

/* Removes natra's fq; whatever else is at the root is left. */
int qdisc_fq_remove(struct natra *n, struct netlink *nl, uint32_t ifindex);

/* Returns 1 if natra's fq is at the root, 0 if something else is. */
int qdisc_fq_present(struct natra *n, struct netlink *nl, uint32_t ifindex);

#endif
