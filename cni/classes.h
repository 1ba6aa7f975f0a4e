/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the key `classes`: peers with limits of their own. */
#ifndef NATRA_CNI_CLASSES_H
#define NATRA_CNI_CLASSES_H

#include "settings.h"

/* Puts them into the policy, which then points into *settings and into the
 * configuration. The policy has its subnets already. */
int classes_read(struct settings *settings, const cJSON *keys, struct natra *n,
		 struct failure *failure);

#endif
