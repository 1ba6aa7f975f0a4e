/* SPDX-License-Identifier: BSD-2-Clause */
/* The variables that the runtime passes in the environment. */
#ifndef NATRA_CNI_ENV_H
#define NATRA_CNI_ENV_H

#include "failure.h"

/* The variables that a command may need. */
enum {
	ENV_CONTAINERID = 1,
	ENV_NETNS = 2,
	ENV_IFNAME = 4,
	ENV_PATH = 8,
};

/* A member is "" if its variable is not set. */
struct env {
	const char *command;
	const char *container_id;
	const char *netns;
	const char *ifname;
	const char *args;
	bool netns_override; /* netns may be the plugin's own */
};

struct env env_read(void);
int env_check(const struct env *env, unsigned int needs,
	      struct failure *failure);

/* Writes "<namespace>/<pod>" from CNI_ARGS, cut to `size`; "" if either is
 * missing. */
void env_pod(const char *args, char *ret_pod, size_t size);

int env_check_netns(const struct env *env, struct failure *failure);
/* Fails if CNI_NETNS is the plugin's own network namespace, unless
 * CNI_NETNS_OVERRIDE is set. */
int env_check_not_own_netns(const struct env *env, struct failure *failure);

#endif
