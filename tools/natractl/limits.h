/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that make a policy, shared by attach and set. */
#pragma once

#include "cli.h"

/* What natra_configure can change. */
#define LIMITS_LIVE                                                            \
	(OPT_BIT(OPT_INGRESS) | OPT_BIT(OPT_EGRESS) |                          \
	 OPT_BIT(OPT_INGRESS_BURST) | OPT_BIT(OPT_EGRESS_BURST) |              \
	 OPT_BIT(OPT_HEAVY_HITTER_THRESHOLD) | OPT_BIT(OPT_HORIZON) |          \
	 OPT_BIT(OPT_FAST_PASS) | OPT_BIT(OPT_FAST_PASS_SHARE) |               \
	 OPT_BIT(OPT_PACE_LIMIT))
#define LIMITS_ALL                                                             \
	(LIMITS_LIVE | OPT_BIT(OPT_MODE) | OPT_BIT(OPT_EDT) |                  \
	 OPT_BIT(OPT_INGRESS_MODE) | OPT_BIT(OPT_SKETCH_WIDTH) |               \
	 OPT_BIT(OPT_SHAPED_SUBNET) | OPT_BIT(OPT_UNSHAPED_SUBNET))

bool limits_given(const struct opts *opts, uint64_t options);

/* Puts the given limits into `policy`, which then points into the options, and
 * lets the library check them, without touching the kernel. 0, or EXIT_USAGE with the error printed. */
int limits_apply(const struct cli *cli, struct natra_policy *policy);
