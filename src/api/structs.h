/* SPDX-License-Identifier: BSD-2-Clause */
/* The size-versioned structs of the API. */
#ifndef NATRA_API_STRUCTS_H
#define NATRA_API_STRUCTS_H

#include "base/handle.h"
#include "policy/subnets.h"

/*
 * Copies a caller's struct, whose first member is its size. The struct of an
 * older caller is shorter, and what it lacks is set to 0. That of a newer
 * caller may be longer if all bytes that this version does not know are 0.
 */
int struct_in(struct natra *n, const char *name, void *to, size_t size,
	      const void *from);

/* Copies a target and checks that its strings are not too long and that it
 * names one namespace only. */
int target_in(struct natra *n, const struct natra_target *target,
	      struct natra_target *ret_target);

/*
 * Copies and checks a policy. The caller's lists become *ret_subnets. Their
 * lengths stay in the policy; a caller may also give a length without a list.
 */
int policy_in(struct natra *n, const struct natra_policy *policy,
	      struct natra_policy *ret_policy, struct subnets *ret_subnets);

/* Copies a struct to the caller, as much of it as the caller has room for. */
int struct_out(struct natra *n, const char *name, void *to, const void *from,
	       size_t size);

/* Returns what struct_out would return, before there is anything to copy. */
int struct_out_check(struct natra *n, const char *name, const void *to);

#endif
