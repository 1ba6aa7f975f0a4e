/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What natra needs of the kernel. Each part is tried and not inferred from the
 * version: the kernels of distributions have much that came after it.
 */
#ifndef NATRA_KERNEL_H
#define NATRA_KERNEL_H

#include "handle.h"

enum kernel_part {
	KERNEL_ECN,          /* for the mark on packets over the rate */
	KERNEL_COARSE_CLOCK, /* for the clock of most packets */
	KERNEL_ATOMICS,      /* for buckets that all CPUs share */
	KERNEL_NETNS_COOKIE, /* for telling namespaces apart */
	KERNEL_REQUIRED, /* the number of those before, which are required */
	KERNEL_SET_TSTAMP = KERNEL_REQUIRED, /* for departure times */
	KERNEL_PART_MAX
};

/* 1: this kernel has it; 0: it lacks it; or what kept us from trying, as -errno
 * and without an error text. Takes 20 us. */
int kernel_has(enum kernel_part part);

/* -EOPNOTSUPP if the kernel lacks this part, which the error text then names; 0
 * if it has it or does not tell. */
int kernel_require(struct natra *n, enum kernel_part part);

/* The same for all parts that are required; the text names all that is lacking. */
int kernel_require_all(struct natra *n);

/*
 * What to return for an operation that failed with `error`: -EOPNOTSUPP if the
 * kernel lacks something that is required, which the error text then names, else
 * `error`, whose text stays.
 */
int kernel_blame(struct natra *n, int error);

#endif
