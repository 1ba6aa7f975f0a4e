/* SPDX-License-Identifier: BSD-2-Clause */
/* The qdisc at one place of an interface, natra's or another's. */
#ifndef NATRA_KERNEL_QDISC_H
#define NATRA_KERNEL_QDISC_H

#include <linux/pkt_sched.h>
#include <stdint.h>

#include "kernel/netlink.h"

/* The options of fq up to the last one that natra sets. */
#define QDISC_FQ_OPTIONS (TCA_FQ_HORIZON_DROP + 1)

struct qdisc {
	uint32_t handle;               /* 0: the kernel's default qdisc */
	char kind[16];                 /* "" if there is none */
	uint32_t fq[QDISC_FQ_OPTIONS]; /* of fq only, by the kernel's numbers */
	uint32_t backlog_bytes;
	uint64_t sent_bytes;
	struct tc_htb_glob htb; /* of htb only */
	struct tc_tbf_qopt tbf; /* of tbf only */
	uint64_t tbf_bytes_per_sec;
	uint64_t tbf_peak_bytes_per_sec; /* 0: it has no peak rate */
};

/* Gets the qdisc at `parent`, TC_H_ROOT or TC_H_INGRESS. An interface that is
 * gone has none. */
int qdisc_get(struct natra *n, struct netlink *nl, uint32_t ifindex,
	      uint32_t parent, struct qdisc *ret_qdisc);

/* Removes that qdisc, unless another one is there now; it is no error if none
 * is. */
int qdisc_remove(struct natra *n, struct netlink *nl, uint32_t ifindex,
		 uint32_t parent, const struct qdisc *qdisc);

/* Returns a rate that is in 64 bits if it does not fit in 32. */
uint64_t qdisc_rate(const struct tc_ratespec *rate,
		    const struct nlattr *rate64);

#endif
