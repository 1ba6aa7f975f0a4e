/* SPDX-License-Identifier: BSD-2-Clause */
/* What the runtime says in the environment. */
#pragma once

#include "failure.h"

/* Which variables a command needs. */
enum {
	ENV_CONTAINERID = 1,
	ENV_NETNS = 2,
	ENV_IFNAME = 4,
	ENV_PATH = 8,
};

/* "" where a variable is not set. */
struct env {
	const char *command;
	const char *container_id;
	const char *netns;
	const char *ifname;
	const char *args;
	bool netns_override; /* may be the plugin's own */
};

struct env env_read(void);
int env_check(const struct env *env, unsigned int needs,
	      struct failure *failure);

/* "<namespace>/<pod>" of CNI_ARGS, cut to `size`; "" if it has not both. */
void env_pod(const char *args, char *ret_pod, size_t size);

/* What the specification asks of container ids and network names alike. */
bool env_name_ok(const char *name);

int env_check_netns(const struct env *env, struct failure *failure);
/* CNI_NETNS must not be the plugin's own, unless CNI_NETNS_OVERRIDE is set. */
int env_check_not_own_netns(const struct env *env, struct failure *failure);
