/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NATRACTL_GROUP_H
#define NATRACTL_GROUP_H

#include <natra/natra.h>

#include "cli.h"
#include "json.h"
#include "opts.h"

/* Returns the options of `group set` that are also those of an attachment. */
uint64_t group_limit_options(void);

/* What `automatic` of natra_policy points to, with room for the name of its parent. */
struct automatic_group {
	struct natra_group_info info;
	char parent[NATRA_GROUP_NAME_MAX + 1];
};

/* Checks the limits for an automatic group by themselves. Returns 0, or EXIT_USAGE after
 * printing the error. */
int automatic_check(const struct cli *cli);

/* Makes the policy's group automatic if the options have limits for it. Returns 0, or
 * EXIT_USAGE after printing the error. */
int automatic_apply(const struct cli *cli, struct automatic_group *group,
		    struct natra_policy *policy);

/* Adds what a group is to be. */
void group_json(cJSON *to, const struct natra_group_info *group);

#endif
