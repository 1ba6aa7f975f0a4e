/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that make a policy, shared by attach and set. */
#ifndef NATRACTL_LIMITS_H
#define NATRACTL_LIMITS_H

#include "cli.h"

/* Returns the options for all limits. */
uint64_t limits_options(void);
/* Returns those that natra_configure can change. */
uint64_t limits_live_options(void);
/* Returns those for the rates of both directions. */
uint64_t limits_rate_options(void);
/* Returns whether any of these options was given. */
bool limits_given(const struct opts *opts, uint64_t options);

/* Checks the given limits, each by itself. Returns 0, or EXIT_USAGE after printing the
 * error. */
int limits_check(const struct cli *cli);

/* Puts the given limits, without classes, into `policy`, which then points into the
 * options, and lets the library check them. Returns 0, or EXIT_USAGE after printing the
 * error. */
int limits_apply(const struct cli *cli, struct natra_policy *policy);

#endif
