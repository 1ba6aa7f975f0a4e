/* SPDX-License-Identifier: BSD-2-Clause */
/* Changing the limits of a live generation. */
#ifndef NATRA_ATTACH_LIMITS_H
#define NATRA_ATTACH_LIMITS_H

#include "state/pin.h"

/* Writes new limits into the programs' maps and records them; or nothing. */
int limits_set(struct natra *n, struct pin_gen *gen,
	       const struct natra_policy *policy);

/* Whether the generation has programs for each direction that is limited. */
bool limits_cover(const struct meta *meta, const struct natra_policy *policy);

#endif
