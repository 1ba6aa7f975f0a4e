/* SPDX-License-Identifier: BSD-2-Clause */
/* Classes of peers: the limits that hold for each. Nothing here asks
 * the kernel. The number of a class counts from 1; 0 stands for the peers that are in
 * none. */
#ifndef NATRA_POLICY_CLASSES_H
#define NATRA_POLICY_CLASSES_H

#include <stdbool.h>
#include <stddef.h>

#include "policy/policy.h"
#include "policy/subnets.h"

/* Returns whether anything may be limited in a direction: the rest, or a class. A group
 * may get a rate later. */
bool classes_limit(const struct natra_policy *policy,
		   const struct subnets *subnets, bool egress);

/* Returns the policy with the highest egress rate that the rest or a class has, where
 * none is higher than any, and exempt peers have none: what is fixed for a whole interface
 * must suit that. */
struct natra_policy classes_fastest(const struct natra_policy *policy,
				    const struct subnets *subnets);

/* Returns the limits of a class, or of the rest, in one leg; see policy_limits. */
struct natra_limits classes_limits(const struct natra_policy *policy,
				   const struct subnets *subnets, size_t number,
				   enum leg leg, bool paced);

/* Does the same for the backstop, see policy_backstop. */
struct natra_limits classes_backstop(const struct natra_policy *policy,
				     const struct subnets *subnets,
				     size_t number);

#endif
