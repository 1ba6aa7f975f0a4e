/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables by which the plugin and natractl take the place of `auto` on a node. The
 * library reads none. */
#ifndef NATRA_POLICY_ENVIRONMENT_H
#define NATRA_POLICY_ENVIRONMENT_H

#include <stddef.h>

#include <natra/natra.h>

#define ENVIRONMENT_ERROR_MAX 256

/* Fills in the mode and the pacing that are `auto` in the policy. Returns 0, or -EINVAL
 * and a line about the variable that is wrong. A set-uid process has no variables. */
int environment_read(struct natra_policy *policy, char *ret_error, size_t size);

#endif
