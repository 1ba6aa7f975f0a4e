/* SPDX-License-Identifier: BSD-2-Clause */
/* The meaning of a group's limits. Nothing here asks the kernel. */
#ifndef NATRA_POLICY_GROUP_LIMITS_H
#define NATRA_POLICY_GROUP_LIMITS_H

#include <stdbool.h>

#include <natra/natra.h>

#include "../../bpf/natra_shared.h"

/* Returns the limits of one direction of a group. `parent` is that of it; NULL: it has
 * none. */
struct natra_group_limits group_limits(const struct natra_group_given *given,
				       const struct natra_group_given *parent,
				       bool egress);

#endif
