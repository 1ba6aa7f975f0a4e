/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups are made and changed, and attachments enter them, while group_map.h has them locked. */
#ifndef NATRA_STATE_GROUP_SET_H
#define NATRA_STATE_GROUP_SET_H

#include "state/group_map.h"

/* Makes the group `name`, or changes its limits to those of `group`; or leaves all as it is.
 * The limits have been checked by group_check. */
int group_set(struct natra *n, const struct groups *groups, const char *name,
	      const struct natra_group_info *group);

/*
 * Finds the group that a policy names, and holds it (see group_map.h) until the caller closes
 * *ret, which it does once the record says that the attachment `id` is a member of group
 * *ret_number. An automatic group whose limits the policy has is made first, or gets
 * them. `label` (may be NULL) has the namespace, which can make a few of them only. If the policy
 * names no group, *ret stays closed and *ret_number becomes 0, which is all that natra_preload
 * needs of a group.
 * Returns -ENOENT if there is no such group, -ERANGE if the floors of its members would be more
 * than its rate, and -EUSERS if there is no room for an automatic group. After a failure,
 * groups_sweep is needed once the record is gone.
 */
int group_enter(struct natra *n, const char *id, const char *label,
		const struct natra_policy *policy, struct groups *ret,
		uint32_t *ret_number);

#endif
