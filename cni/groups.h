/* SPDX-License-Identifier: BSD-2-Clause */
/* The key `group`: which group a pod is in, and the rates of that group. */
#ifndef NATRA_CNI_GROUPS_H
#define NATRA_CNI_GROUPS_H

#include "../tools/common/log.h"
#include "settings.h"

/* Reads all but the name of a group. The texts belong to `object`. Returns 0 or a code,
 * with the text in *failure, as do groups_read and groups_join. */
int groups_read_limits(const cJSON *object, struct natra_group_info *ret,
		       struct failure *failure);

/* Reads the key. Until the pod is known, the policy is in group GROUP_UNKNOWN, so
 * that it can have a weight and a floor. */
int groups_read(struct settings *settings, const cJSON *keys,
		struct failure *failure);
#define GROUP_UNKNOWN 1

/*
 * Puts the policy into the group of this pod. A group
 * whose rates the configuration has is made, or gets these rates. The pod is in no
 * group, see groups_absence, if there is none of that name, if it lacks what the template
 * needs, or, with "onError": "continue", after an error. A direction in which the group has a rate, and the pod has none,
 * gets the highest rate there is, because a group limits only what has a rate. Another
 * call, for a group that has gone meanwhile, begins anew.
 */
int groups_join(struct settings *settings, const struct asker *asker,
		struct natra *n, struct log *log, struct failure *failure);

/* Returns whether each pod is in a group by this key, which has a name. */
bool groups_are_for_all(const struct natra_group_info *group);

struct groups_absence {
	char text[2 * NATRA_GROUP_NAME_MAX];
};

/* Returns why groups_join has put the pod into no group, or NULL. Errors are logged. */
const char *groups_absence(const struct settings *settings,
			   struct groups_absence *ret);

/*
 * Attaches a pod that groups_join has put into a group. The group may be removed, and its
 * number be another one's, before the pod is a member; then groups_join is asked again. In
 * the end the pod is in its own group or in none.
 */
struct groups_attach {
	struct settings *settings;
	const struct asker *asker;
	struct natra *n;
	struct log *log;
	struct failure *failure;
	/* Gives the pod these limits. If there are none, an earlier call may have
	 * attached it. Returns 0 or an error of the library. */
	int (*attach)(void *arg, const struct natra_policy *policy);
	void *arg;
};

/* Returns what the last call returned, or a code if the pod is in no group for an error. */
int groups_attach(const struct groups_attach *a);

/* Removes each group without members that groups_join has made, by whatever configuration:
 * its last member has been removed without DEL. Returns how many. */
size_t groups_sweep(struct natra *n, struct log *log);

/* Returns whether ADD makes a group for this pod, or gives it its rates. */
bool groups_make(const struct settings *settings, const struct asker *asker);

/* Removes the pod's group if the configuration has its rates and it has no member. */
void groups_leave(const cJSON *keys, const struct asker *asker, struct natra *n,
		  struct log *log);

#endif
