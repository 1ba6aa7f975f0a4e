/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What natra needs of the kernel. Each part is tried and not inferred from the
 * version: the kernels of distributions have much that came after it.
 */
#ifndef NATRA_KERNEL_FEATURE_H
#define NATRA_KERNEL_FEATURE_H

#include "base/handle.h"

enum kernel_part {
	KERNEL_ECN,          /* to mark packets over the rate */
	KERNEL_COARSE_CLOCK, /* the clock that most packets need */
	KERNEL_ATOMICS,      /* for the buckets, which CPUs share */
	KERNEL_NETNS_COOKIE, /* to tell namespaces apart */
	KERNEL_REQUIRED,     /* the number of parts above, which are required */
	KERNEL_SET_TSTAMP = KERNEL_REQUIRED, /* for departure times */
	KERNEL_PART_MAX
};

/* Returns 1 if this kernel has the part, 0 if it lacks it, or -errno, without
 * an error text, if it could not be tried. It takes 20 us. */
int kernel_has(enum kernel_part part);

/* Returns -EOPNOTSUPP if the kernel lacks this part, which the error text then
 * names; 0 if the kernel has it or does not tell. */
int kernel_require(struct natra *n, enum kernel_part part);

/* Does the same for all required parts; the error text names all that are
 * lacking. */
int kernel_require_all(struct natra *n);

/* Returns what an operation that failed with `error` should return: -EOPNOTSUPP
 * if the kernel lacks a required part, which the error text then names, else
 * `error`, whose text stays. */
int kernel_blame(struct natra *n, int error);

#endif
