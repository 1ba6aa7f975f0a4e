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

/* A program, or another filter, on a hook. */
struct hook_program {
	uint32_t prog_id; /* 0: not BPF */
	char name[16];    /* the program's, or the filter's kind */
	/* What the filter is called by the one who made it, or "". */
	char label[32];
	uint32_t priority;
	uint32_t handle;
	bool is_hidden; /* only CAP_SYS_ADMIN may ask for its name */
};

typedef int (*hook_list_fn)(void *arg, const struct hook_program *program);

/* Returns 1 if this kernel has TCX, 0 if not. */
int hook_tcx_supported(struct natra *n);

/* Attaches a program at the head of the chain. It is detached when the last
 * descriptor or pin of the link goes. */
int hook_tcx_attach(struct natra *n, const struct hook *hook, int prog_fd,
		    int *ret_link_fd);

/* Lists the TCX programs in the order in which they run. A kernel without TCX
 * has none. */
int hook_tcx_list(struct natra *n, const struct hook *hook, hook_list_fn cb,
		  void *arg);

/* Returns 1 if a program is among them, and 0 if not. */
int hook_tcx_find(struct natra *n, const struct hook *hook, uint32_t prog_id);

/*
 * Attaches a program in front of the filters that are there, if those are BPF.
 * If the interface has a clsact qdisc it is used, else one is made. Returns
 * -EOPNOTSUPP if this kernel has no clsact, or an `ingress` qdisc is in its
 * place.
 */
int hook_clsact_attach(struct natra *n, struct netlink *nl,
		       const struct hook *hook, int prog_fd, uint32_t prog_id);

/* Returns 0 if hook_clsact_attach can attach a program, and -EOPNOTSUPP if another qdisc is in the
 * place of clsact, or filters of another kind or protocol in that of natra's, or the hook shares its
 * filters with others. `ifname` is for the error text. */
int hook_clsact_check_place(struct natra *n, struct netlink *nl,
			    const struct hook *hook, const char *ifname);

/* Makes a clsact qdisc, if there is none. Returns -EOPNOTSUPP if this kernel has none. */
int hook_clsact_make(struct natra *n, struct netlink *nl, uint32_t ifindex);

/* Returns 1 if the interface has a clsact qdisc, and 0 if not. */
int hook_clsact_is_there(struct natra *n, struct netlink *nl, uint32_t ifindex);

/* Removes the clsact qdisc if it has no filter of anybody any more; it is no error if
 * there is none. */
int hook_clsact_remove(struct natra *n, struct netlink *nl, uint32_t ifindex);

/* Removes the filter that runs this program; it is no error if there is
 * none. */
int hook_clsact_detach(struct natra *n, struct netlink *nl,
		       const struct hook *hook, uint32_t prog_id);

/* Lists the filters of a clsact or of an `ingress` qdisc, as far as they are few:
 * *ret_is_cut says that there are more. */
int hook_clsact_list(struct natra *n, const struct hook *hook, hook_list_fn cb,
		     void *arg, bool *ret_is_cut);

/* Returns whether the program is natra's, of whatever attachment, by its
 * name. */
bool hook_program_is_natra(const struct hook_program *program);

/* Returns whether the program gives packets departure times, or is hidden, so that it may be one
 * of natra's that does. */
bool hook_program_may_pace(const struct hook_program *program);

/* Gets the name that a program was loaded with by its number: "" if it has none, is gone or is
 * hidden. */
void hook_program_look(struct hook_program *program);

/* Returns 1 if the filter that hook_clsact_attach has made for the program is there, and 0
 * if not. */
int hook_clsact_find(struct natra *n, const struct hook *hook, uint32_t prog_id,
		     struct hook_program *ret_program);

#endif
