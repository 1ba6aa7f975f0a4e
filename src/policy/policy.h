/* SPDX-License-Identifier: BSD-2-Clause */
/* The meaning of a policy: its checks, its defaults, and the numbers that the data
 * path runs on. Nothing here asks the kernel. */
#ifndef NATRA_POLICY_POLICY_H
#define NATRA_POLICY_POLICY_H

#include <stdbool.h>

#include <natra/natra.h>

#include "../../bpf/natra_shared.h"

struct policy_field;

/* The three places where an attachment may judge packets of a pod. */
enum leg {
	LEG_INGRESS, /* into the pod; behind LEG_HOST it is the backstop */
	LEG_EGRESS,  /* out of the pod */
	LEG_HOST, /* into the pod, on the host side of a podside mode, or paced */
	LEG_MAX
};

#define BITS_PER_BYTE 8

/* By default a burst is what the rate carries in this time, and a flow is heavy from
 * what it carries in that one. */
#define POLICY_BURST_NS     500000000ULL
#define POLICY_THRESHOLD_NS 100000000ULL

/* No packet is longer, but for BIG TCP, and the headers of its segments. */
#define POLICY_GSO_MAX_BYTES 65536

/* The shortest units of time of natra_fair.h, as shifts. */
#define POLICY_FAIR_SHIFT_HELD    24
#define POLICY_FAIR_SHIFT_POLICED 26

/* These return 0, or -EINVAL and a line about the field that is wrong. The first looks at each
 * number by itself: what it needs beside it may come later. The second looks at the shaped and
 * the unshaped subnets, but not at those of classes. */
int policy_check_ranges(const struct natra_policy *policy, char *ret_error,
			size_t size);
int policy_check_subnets(const struct natra_policy *policy, char *ret_error,
			 size_t size);
int policy_check(const struct natra_policy *policy, char *ret_error,
		 size_t size);

/* Fills in the defaults of everything but attach_mode and edt_pacing. */
struct natra_policy policy_effective(const struct natra_policy *policy);

/* Returns a setting in which two policies differ with their defaults, of all or of those
 * that are fixed while attached, or NULL. */
const struct policy_field *policy_difference(const struct natra_policy *a,
					     const struct natra_policy *b,
					     bool only_fixed);

/* Returns whether two policies need the same programs and maps, but for their lists, see
 * subnets_same_shape. */
bool policy_same_shape(const struct natra_policy *a,
		       const struct natra_policy *b);

/* Returns how many segments a packet of a local TCP stream may have, so that none
 * takes longer to send than 5 ms where egress is paced, or 1 s where it is policed
 * in the pod, but at least two. 0 stands for as many as the kernel likes. */
uint32_t policy_gso_segs(const struct natra_policy *policy, bool paced);

/* Returns the part that a member with this weight (0: 1) and floor (0: none) has in a
 * group, whose place is set by policy_join. */
struct natra_membership policy_part(uint32_t weight,
				    uint64_t floor_bits_per_sec);

/* Says in which group a member is; does nothing if it is none, which has no share. */
void policy_join(struct natra_membership *member, uint32_t number, bool egress);

/* Returns a rate as ns per byte, exact to 2^-21 from 1 bit/s to 1 Pbit/s. */
struct natra_rate policy_rate(uint64_t rate_bits_per_sec, uint64_t burst_bytes);

/* Returns the bytes of a burst, of which a part of one is one more. */
uint64_t policy_burst_bytes(uint64_t bits);

/* Returns the bytes that a rate sends in a time; at least 1 if the rate is not
 * 0, because 0 bytes stand for a default. */
uint64_t policy_bytes_in(uint64_t rate_bits_per_sec, uint64_t ns);

/* Return the units from which a flow is heavy, and those below which it is a mouse
 * again. */
uint32_t policy_units(uint64_t bytes);
uint32_t policy_leave_units(uint32_t enter_units);

/* Returns from when on small flows that are free exceed the limit, see natra_over.h. What is no
 * debt is the burst (in bytes), the queue, and as much of small flows as a page with its pictures
 * has. */
struct natra_over_limits policy_over(uint64_t rate_bits_per_sec, uint64_t burst,
				     uint64_t delay_ns);

/* Returns the least power of two of ns, as a shift, in which the bytes can be
 * sent at the rate. */
uint32_t policy_fair_shift(const struct natra_rate *rate, uint64_t bytes,
			   uint32_t least);

/*
 * Returns the limits of one leg. `paced` says that its packets can be given a
 * departure time. The limits of an unlimited direction are all 0, and the data
 * path lets its packets pass. Those of a member lack the place of its group.
 */
struct natra_limits policy_limits(const struct natra_policy *policy,
				  enum leg leg, bool paced);

/*
 * Returns the limits of the backstop, which is behind LEG_HOST and sees what that has
 * passed as well as what came past it. It has the same rates, and it refuses nothing that
 * LEG_HOST has passed. It is in no group, since LEG_HOST has charged that.
 */
struct natra_limits policy_backstop(const struct natra_policy *policy);

/* Does the same as policy_limits for an interface that shares its longest GSO packet with other
 * limits: `segs` is policy_gso_segs() of the one that decides it. */
struct natra_limits policy_limits_of(const struct natra_policy *policy,
				     enum leg leg, bool paced, uint32_t segs);

#endif
