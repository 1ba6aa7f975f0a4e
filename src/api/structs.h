/* SPDX-License-Identifier: BSD-2-Clause */
/* The size-versioned structs of the API. */
#ifndef NATRA_API_STRUCTS_H
#define NATRA_API_STRUCTS_H

#include "base/handle.h"
#include "policy/subnets.h"

/* The least that `sz` can be: where the first version of a struct ends. This stays
 * when members follow. A struct with room is never shorter than it is. */
#define FIRST_END(type, member)                                                \
	(offsetof(struct type, member) + sizeof(((struct type *)0)->member))
#define FIRST_OPTS        FIRST_END(natra_open_opts, refuse_other_abi)
#define FIRST_TARGET      FIRST_END(natra_target, label)
#define FIRST_INFO        FIRST_END(natra_info, upgrade_is_in_place)
#define FIRST_STATS       FIRST_END(natra_stats, egress_connects)
#define FIRST_EVENT       FIRST_END(natra_event, group)
#define FIRST_GROUP       FIRST_END(natra_group_info, free_bytes)
#define FIRST_LEFTOVERS   FIRST_END(natra_leftovers, htb)
#define FIRST_FEATURES    FIRST_END(natra_features, abi)
#define FIRST_ANNOTATIONS FIRST_END(natra_annotations, skip_bad)

/*
 * Copies a caller's struct, whose first member is its size: `first`, or more. The
 * struct of an older caller is shorter than `size`, and what it lacks is set to 0. That of
 * a newer caller may be longer if all bytes that this version does not know are 0.
 */
int struct_in(struct natra *n, const char *name, void *to, size_t first,
	      size_t size, const void *from);

/* Copies a target and checks that its strings are not too long and that it
 * names one namespace only. */
int target_in(struct natra *n, const struct natra_target *target,
	      struct natra_target *ret_target);

/*
 * Copies and checks a policy. The caller's lists become *ret_subnets. Their
 * lengths stay in the policy; a caller may also give a length without a list. The
 * limits of an automatic group become *ret_automatic, to which the policy points.
 */
int policy_in(struct natra *n, const struct natra_policy *policy,
	      struct natra_policy *ret_policy,
	      struct natra_group_info *ret_automatic,
	      struct subnets *ret_subnets);

/* Copies a struct to the caller, as much of it as the caller has room for. Members
 * that only a newer caller has are not written: the caller's NATRA_INIT made them 0. */
int struct_out(struct natra *n, const char *name, void *to, const void *from,
	       size_t first, size_t size);

/* Returns what struct_out would return, before there is anything to copy. */
int struct_out_check(struct natra *n, const char *name, const void *to,
		     size_t first);

#endif
