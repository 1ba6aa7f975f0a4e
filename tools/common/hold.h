/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether what is judged on the host side holds beside the programs of a network that is known by
 * their names. What such a network does was measured beside it:
 *
 * - Cilium's and Calico's redirect packets from one pod's veth into another pod (host routing),
 *   past all that is on the host side of that one. Cilium does so if it replaces kube-proxy, which
 *   its next start may begin or end, and which its programs' names do not tell. By TCX they run
 *   before all filters, and what they accept or redirect ends there.
 * - AWS's network policy agent puts its filters in front when it starts, and Cilium without TCX
 *   removes all filters when it makes an endpoint's programs anew: natra-agent gives natra its
 *   place back.
 */
#ifndef NATRA_COMMON_HOLD_H
#define NATRA_COMMON_HOLD_H

#include <stdbool.h>

#include <natra/natra.h>

struct hold {
	const struct natra_info *info; /* set by the caller; the rest is 0 */
	/* The first program beside which the limit does not hold, or does only as long as
	 * somebody gives natra its place back. NULL: none. */
	const char *owner;
	char program[32];
	bool is_lost[NATRA_DIRECTION_MAX];
	bool group_limits_ingress; /* see hold_read_group */
	bool is_shaky;
};

/* A setting that loses a limit for good. */
struct hold_loss {
	const char *key, *value;
	const char *lost;
	const char *holds; /* what loses nothing */
};

/* Returns whether there are neighbours beside which these limits are lost. */
bool hold_may_lose(const struct natra_info *info);

/* Finds out whether there is an ingress limit of the pod's group, or of its group's parent, that
 * the pacer alone charges. If the groups cannot be read, there is. */
void hold_read_group(struct hold *hold, struct natra *n);

/* Notes a program; a natra_neighbour_fn whose `arg` is a struct hold. */
int hold_note(void *arg, const struct natra_neighbour *e);

/* Returns whether a limit is lost, and by which setting. */
bool hold_lost(const struct hold *hold, struct hold_loss *ret_loss);

#endif
