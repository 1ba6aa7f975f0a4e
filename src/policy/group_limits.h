/* SPDX-License-Identifier: BSD-2-Clause */
/* The meaning of a group's limits. Nothing here asks the kernel. */
#ifndef NATRA_POLICY_GROUP_LIMITS_H
#define NATRA_POLICY_GROUP_LIMITS_H

#include <stdbool.h>

#include <natra/natra.h>

#include "../../bpf/natra_shared.h"

/* Both return 0, or -EINVAL and a line about the field that is wrong: of a group, of
 * its name alone. */
int group_check(const struct natra_group_info *group, char *ret_error,
		size_t size);
int group_check_name(const char *field, const char *name, char *ret_error,
		     size_t size);

/* Returns the limits of one direction of a group. `parent` is that of it; NULL: it has
 * none. */
struct natra_group_limits group_limits(const struct natra_group_given *given,
				       const struct natra_group_given *parent,
				       bool egress);

#endif
