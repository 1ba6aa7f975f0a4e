/* SPDX-License-Identifier: BSD-2-Clause */
/* The checks of what a group is to be. Nothing here asks the kernel. */
#ifndef NATRA_POLICY_GROUP_CHECK_H
#define NATRA_POLICY_GROUP_CHECK_H

#include <stddef.h>

#include <natra/natra.h>

/* These return 0, or -EINVAL and a line about the field that is wrong: of a group, of
 * its name alone, of what a policy says of its group. */
int group_check(const struct natra_group_info *group, char *ret_error,
		size_t size);
int group_check_name(const char *field, const char *name, char *ret_error,
		     size_t size);
int group_check_member(const struct natra_policy *policy, char *ret_error,
		       size_t size);

/* Does the same if this floor in a group is more than a rate, of which 0 stands for
 * none. */
int group_check_floor(const char *field, uint64_t floor, uint64_t ingress,
		      uint64_t egress, char *ret_error, size_t size);

#endif
