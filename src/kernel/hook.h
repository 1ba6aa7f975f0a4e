/* SPDX-License-Identifier: BSD-2-Clause */
/* An interface's tc hooks, by TCX links or clsact filters. All functions work
 * in the network namespace of the calling thread. */
#ifndef NATRA_KERNEL_HOOK_H
#define NATRA_KERNEL_HOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/netlink.h"

struct hook {
	uint32_t ifindex;
	bool ingress; /* where the interface receives */
};

/* What stands on a hook. */
struct hook_program {
	uint32_t prog_id; /* 0: not BPF */
	char name[16];    /* the program's, or the filter's kind */
	uint32_t priority;
	uint32_t handle;
};

typedef int (*hook_list_fn)(void *arg, const struct hook_program *program);

/* 1: this kernel has TCX; 0: it has not. */
int hook_tcx_supported(struct natra *n);

/* At the head of the chain. Detached when the last descriptor or pin goes. */
int hook_tcx_attach(struct natra *n, const struct hook *hook, int prog_fd,
		    int *ret_link_fd);

/* In the order in which they run; a kernel without TCX has none. */
int hook_tcx_list(struct natra *n, const struct hook *hook, hook_list_fn cb,
		  void *arg);

/*
 * Shares the clsact qdisc with whoever made it, or makes it; in front of the
 * filters that are there, if they are BPF. -EOPNOTSUPP: this kernel has none, or
 * an `ingress` qdisc is in its place.
 */
int hook_clsact_attach(struct natra *n, struct netlink *nl,
		       const struct hook *hook, int prog_fd, uint32_t prog_id);

/* Removes filters that run this program; success if there is none. */
int hook_clsact_detach(struct natra *n, struct netlink *nl,
		       const struct hook *hook, uint32_t prog_id);

/* Also those of an `ingress` qdisc. */
int hook_clsact_list(struct natra *n, struct netlink *nl,
		     const struct hook *hook, hook_list_fn cb, void *arg);

/* By its name: of this or any other attachment. */
bool hook_program_is_natra(const struct hook_program *program);

/* The name that a program was loaded with; "" if it is gone. */
void hook_program_name(uint32_t prog_id, char *ret_name, size_t size);

/* 1: a filter runs the program; 0: none does. */
int hook_clsact_has(struct natra *n, struct netlink *nl,
		    const struct hook *hook, uint32_t prog_id);

#endif
