/* SPDX-License-Identifier: BSD-2-Clause */
/* The key `group`: which group a pod is in, and the rates of that group. */
#ifndef NATRA_CNI_GROUPS_H
#define NATRA_CNI_GROUPS_H

#include "../tools/common/log.h"
#include "settings.h"

/* Reads the key. Until the pod is known, the policy is in a group that is named by the
 * template. With rates the group is an automatic one, which the library makes; else it
 * is one that an administrator has made. Returns 0 or a code, with the text in *failure, as
 * does groups_join. */
int groups_read(struct settings *settings, const cJSON *keys,
		struct failure *failure);

/* Writes the name of the group of this pod into the policy. The pod is in no group, see group_absence
 * in settings.h, if an administrator has made none of that name, if it lacks what the template needs,
 * or, with "onError": "continue", after an error. */
int groups_join(struct settings *settings, const struct asker *asker,
		struct natra *n, struct log *log, struct failure *failure);

/* If the group of groups_join is impossible for this pod, whatever it has asked for since is
 * lowered to the rates that the group would have. */
void groups_keep_rates(struct settings *settings);

typedef int (*groups_attach_fn)(void *arg, const struct natra_policy *policy);

/* Lets `attach` give the pod the limits of the policy, and returns what that returns, 0 or an error
 * of the library. If there is no such administrators' group, or, with "onError": "continue", no
 * parent or no room for the pod's floor, the pod leaves it and is attached again. With "continue"
 * each error is first followed by a try without natra's annotations, see `dropped`. */
int groups_attach(struct settings *settings, struct natra *n, struct log *log,
		  groups_attach_fn attach, void *arg);

/* Returns whether ADD puts this pod into an automatic group. */
bool groups_make(const struct settings *settings, const struct asker *asker);

#endif
