/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes the limits of a generation that is attached. */
#ifndef NATRA_ATTACH_LIMITS_H
#define NATRA_ATTACH_LIMITS_H

#include "state/pin.h"

/* Writes new limits to the slots and to the record, and changes what its classes are, or
 * changes nothing. The classes have the same names as before. If `keeps_half`, some of the lists are
 * those that an interrupted change has left, and the record goes on saying so. hint_fd is a
 * namespace where the pod may be, or -1. */
int limits_set(struct natra *n, struct pin_gen *gen,
	       const struct natra_policy *policy, const struct subnets *subnets,
	       bool keeps_half, int hint_fd);

/* Returns whether an attachment, whose classes are those of `subnets`, has for each
 * direction that a policy or its classes limit the programs that an attach would give
 * it. One that only measures connections, or that knows no groups, may be another. */
bool limits_cover(const struct record *record, const struct subnets *subnets,
		  const struct natra_policy *policy, const struct subnets *to);

/* Lets no limits hold in the legs that are lifted, until limits_restore is called. The caller
 * unlocks *ret_lifting after that; once it is unlocked, limits_repair gives the limits
 * back. The record stays as it is. */
int limits_lift(struct natra *n, const struct pin_gen *gen,
		const bool lifted[LEG_MAX], struct pin_dir *ret_lifting);

/* Gives all legs the limits on record. */
int limits_restore(struct natra *n, const struct pin_gen *gen);

/* Does the same unless a process has lifted them that will give them back. */
int limits_repair(struct natra *n, struct pin_gen *gen);

#endif
