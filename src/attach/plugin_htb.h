/* SPDX-License-Identifier: BSD-2-Clause */
/* The htb that versions 1.5.0 and 1.5.1 of upstream's bandwidth plugin put where others
 * put a tbf. */
#ifndef NATRA_ATTACH_PLUGIN_HTB_H
#define NATRA_ATTACH_PLUGIN_HTB_H

#include <linux/pkt_sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernel/link.h"
#include "kernel/qdisc.h"

/* At which queues drain at least. A bucket of 512 MB lasts for two seconds, and the
 * machine is left to others. A window of 4 MB takes 16 ms. */
#define DRAIN_BYTES_PER_SEC 250000000ULL

/* The class of what is limited. */
struct plugin_htb {
	struct tc_htb_opt options; /* as the kernel sent them */
	uint64_t bytes_per_sec; /* that the plugin gave; 0: not the plugin's */
	uint32_t fills;         /* how often natra has raised the rate */
	bool is_raised;         /* it still is */
};

/* Reads the htb `qdisc` at the root of an interface. Succeeds also if it is not like the
 * plugin's. */
int plugin_htb_get(struct natra *n, struct netlink *nl,
		   const struct link_info *link, const struct qdisc *qdisc,
		   struct plugin_htb *ret_htb);

/* Raises the rate to about DRAIN_BYTES_PER_SEC, or twice the limit, and counts that. */
int plugin_htb_raise(struct natra *n, struct netlink *nl,
		     const struct link_info *link, struct plugin_htb *htb);

/* Gives the class its own rate again, if it is raised. */
int plugin_htb_restore(struct natra *n, struct netlink *nl,
		       const struct link_info *link,
		       const struct plugin_htb *htb);

#endif
