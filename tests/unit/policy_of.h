/* SPDX-License-Identifier: BSD-2-Clause */
/* A policy with two rates and defaults, and units of time for tests of policies. */
#ifndef NATRA_TEST_POLICY_OF_H
#define NATRA_TEST_POLICY_OF_H

#include "policy/policy.h"

#define MS     1000000ULL
#define SECOND (1000 * MS)

static inline struct natra_policy policy_of(uint64_t ingress, uint64_t egress)
{
	struct natra_policy p = NATRA_INIT(p);

	p.ingress_rate_bits_per_sec = ingress;
	p.egress_rate_bits_per_sec = egress;
	return p;
}

#endif
