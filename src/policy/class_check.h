/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of a policy's classes, and of all its lists together. */
#ifndef NATRA_POLICY_CLASS_CHECK_H
#define NATRA_POLICY_CLASS_CHECK_H

#include "policy/subnets.h"

/* Checks the classes of a policy. Returns 0, or -EINVAL, or -ENOMEM, and a line about
 * what is wrong. */
int classes_check(const struct natra_policy *policy, char *ret_error,
		  size_t size);

/* Checks all lists of blocks together: each block may be in one of them only, and there may
 * be so many. Returns the same. */
int subnets_check(const struct subnets *subnets, char *ret_error, size_t size);

#endif
