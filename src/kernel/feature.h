/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The features that natra needs of the kernel. Each feature is tried, not inferred from
 * the version: the kernels of distributions have many features backported.
 */
#ifndef NATRA_KERNEL_FEATURE_H
#define NATRA_KERNEL_FEATURE_H

#include "base/handle.h"

enum feature {
	FEATURE_ECN,          /* to mark packets over the rate */
	FEATURE_COARSE_CLOCK, /* the clock that most packets need */
	FEATURE_ATOMICS,      /* for the buckets, which CPUs share */
	FEATURE_NETNS_COOKIE, /* to identify namespaces */
	FEATURE_REQUIRED, /* the number of parts above, which are required */
	/* Since then stamps have a type. Without it programs write them as
	 * they are. */
	FEATURE_SET_TSTAMP = FEATURE_REQUIRED,
	FEATURE_MAX
};

/* Returns 1 if this kernel has the feature, 0 if it lacks it, or -errno,
 * without an error text, if it could not be tried. It takes 20 us, once in a process. */
int feature_is_there(enum feature feature);

/* Returns -EOPNOTSUPP if the kernel lacks a required feature, of which the error text
 * names all; 0 if it has them or could not be asked. */
int feature_require_all(struct natra *n);

/* Returns what an operation that failed with `error` should return: -EOPNOTSUPP
 * if the kernel lacks a required feature, which the error text then names, else
 * `error`, whose text stays. */
int feature_blame(struct natra *n, int error);

#endif
