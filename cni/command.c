/* SPDX-License-Identifier: BSD-2-Clause */
#include "command.h"

#include <stdio.h>

bool call_format_id(const struct call *call, const char *container_id,
		    const char *ifname, char *ret_id, size_t size)
{
	int len = snprintf(ret_id, size, "%s/%s/%s", call->conf.name,
			   container_id, ifname);

	return len >= 0 && (size_t)len < size;
}

bool call_make_id(struct call *call)
{
	return call_format_id(call, call->env.container_id, call->env.ifname,
			      call->id, sizeof(call->id));
}

struct natra_target call_target(const struct call *call)
{
	return (struct natra_target){
		.sz = sizeof(struct natra_target),
		.id = call->id,
		.ifname = call->env.ifname,
		.netns = call->env.netns,
		.network = call->conf.name,
		.label = call->pod,
	};
}
