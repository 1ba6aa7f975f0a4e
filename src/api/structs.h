/* SPDX-License-Identifier: BSD-2-Clause */
/* The size-versioned structs of the API. */
#ifndef NATRA_API_STRUCTS_H
#define NATRA_API_STRUCTS_H

#include "base/handle.h"
#include "policy/subnets.h"

/* The extent of a struct that grows at its end. */
struct extent {
	size_t first; /* the least that `sz` can be: the size of its first version */
	size_t known; /* where the members end that this version knows */
	size_t size;
};

/* `last` is the last member that the first version has: this stays when members follow. In
 * `reserved`, and behind the struct, are members of later versions only. */
#define EXTENT(type, last, reserved)                                           \
	((struct extent){                                                      \
		offsetof(struct type, last) +                                  \
			sizeof(((struct type *)0)->last),                      \
		offsetof(struct type, reserved),                               \
		sizeof(struct type),                                           \
	})
/* That of one which has no such bytes at its end now. */
#define EXTENT_FULL(type, last)                                                \
	((struct extent){                                                      \
		offsetof(struct type, last) +                                  \
			sizeof(((struct type *)0)->last),                      \
		sizeof(struct type),                                           \
		sizeof(struct type),                                           \
	})
#define EXTENT_OPTS        EXTENT(natra_open_opts, reserved, reserved)
#define EXTENT_TARGET      EXTENT_FULL(natra_target, label)
#define EXTENT_POLICY      EXTENT(natra_policy, room, room)
#define EXTENT_CLASS       EXTENT(natra_class, room, room)
#define EXTENT_INFO        EXTENT(natra_info, reserved, reserved)
#define EXTENT_STATS       EXTENT_FULL(natra_stats, egress_connects)
#define EXTENT_EVENT       EXTENT(natra_event, reserved, reserved)
#define EXTENT_GROUP       EXTENT_FULL(natra_group_info, free_bytes)
#define EXTENT_LEFTOVERS   EXTENT(natra_leftovers, reserved, reserved)
#define EXTENT_FEATURES    EXTENT(natra_features, reserved, reserved)
#define EXTENT_ANNOTATIONS EXTENT(natra_annotations, reserved, reserved)

/*
 * Copies a caller's struct, whose first member is its size: `of.first`, or more. The
 * struct of an older caller is shorter than `of.size`, and what it lacks is set to 0. That of
 * a newer caller may be longer if all bytes that this version does not know are 0.
 */
int struct_in(struct natra *n, const char *name, void *to, struct extent of,
	      const void *from);

/* Reads a group's limits, which the caller sets; what is only reported is not looked at. */
int group_in(struct natra *n, const char *name,
	     const struct natra_group_info *group,
	     struct natra_group_info *ret_group);

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
int struct_out(struct natra *n, const char *name, void *to, struct extent of,
	       const void *from);

/* Returns what struct_out would return, before there is anything to copy. */
int struct_out_check(struct natra *n, const char *name, const void *to,
		     struct extent of);

#endif
