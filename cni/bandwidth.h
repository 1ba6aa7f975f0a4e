/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the keys of upstream's bandwidth plugin, which the configuration has or
 * the runtime sends: rates in bit/s, bursts in bits, and the subnets of its
 * version 1.5. */
#ifndef NATRA_CNI_BANDWIDTH_H
#define NATRA_CNI_BANDWIDTH_H

#include "settings.h"

/* Puts them into the policy, and lets `precedence` decide between the two
 * places. The policy then points into *settings and into the configuration. */
int bandwidth_read(struct settings *settings, const cJSON *keys,
		   const struct asker *asker, struct natra *n,
		   struct failure *failure);

#endif
