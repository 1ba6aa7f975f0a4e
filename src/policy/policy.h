/* SPDX-License-Identifier: BSD-2-Clause */
/* Pure: validation, defaults, and the numbers that the data path runs on. */
#ifndef NATRA_POLICY_POLICY_H
#define NATRA_POLICY_POLICY_H

#include <stdbool.h>

#include <natra/natra.h>

#include "../../bpf/natra_shared.h"

/* The three places where packets of a pod may be judged. */
enum half {
	HALF_INGRESS, /* into the pod; behind HALF_PACE it is the backstop */
	HALF_EGRESS,  /* out of the pod */
	HALF_PACE,    /* into the pod, on the host side */
	HALF_MAX
};

/* 0, or -EINVAL with a line about the field in error. */
int policy_check(const struct natra_policy *policy, char *ret_error,
		 size_t size);

/* Fill in the defaults of everything but mode and edt. */
struct natra_policy policy_effective(const struct natra_policy *policy);

/* Whether two policies need the same programs and maps, of which the subnets
 * are only counted. */
bool policy_same_shape(const struct natra_policy *a,
		       const struct natra_policy *b);

/* Most segments in a packet of a local TCP stream where egress is paced, so that
 * none takes longer than 1/20 s to send; 0: as many as the kernel likes. */
uint32_t policy_gso_segs(const struct natra_policy *policy);

/* Returns a rate as ns per byte, exact to 2^-21 from 1 bit/s to 1 Pbit/s. */
struct natra_rate policy_rate(uint64_t rate_bits_per_sec, uint64_t burst_bytes);

/*
 * Limits of one half. paced: a departure time can be given there. An unlimited
 * direction gives all zero, which the data path passes.
 */
struct natra_limits policy_limits(const struct natra_policy *policy,
				  enum half half, bool paced);

#endif
