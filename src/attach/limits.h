/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes the limits of a generation that is attached. */
#ifndef NATRA_ATTACH_LIMITS_H
#define NATRA_ATTACH_LIMITS_H

#include "state/pin.h"

/* Writes new limits to the slots and to the record, or changes nothing. */
int limits_set(struct natra *n, struct pin_gen *gen,
	       const struct natra_policy *policy);

/* Returns whether an attachment has for each direction that a policy limits the programs
 * that an attach would give it. One that only measures connections, or that knows no
 * groups, may be another. */
bool limits_cover(const struct record *record,
		  const struct natra_policy *policy);

#endif
