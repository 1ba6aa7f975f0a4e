/* SPDX-License-Identifier: BSD-2-Clause */
#include "command.h"

#include <errno.h>
#include <stdio.h>

#include "../tools/common/annotations.h"

#define ANNOTATIONS "io.kubernetes.cri.pod-annotations"

static void read_namespaces(struct call *call)
{
	struct namespaces_error *error = &call->namespaces_error;
	int r = namespaces_load(NAMESPACES_FILE, &call->namespaces, error);

	if (r < 0)
		call->asker.namespaces_wrong = error->text;
	call->asker.namespaces_code = r == -EINVAL ? CNI_BAD_CONFIG : CNI_IO;
	call->asker.namespaces = call->namespaces;
}

int call_read_asker(struct call *call)
{
	const cJSON *runtime, *pod, *wrong;
	struct asker *asker = &call->asker;
	int r = conf_object(call->conf.json, "runtimeConfig", "runtimeConfig",
			    &runtime, &call->failure);

	asker->pod = call->pod;
	read_namespaces(call);
	if (r)
		return r;
	asker->bandwidth = json_get(runtime, "bandwidth");
	r = conf_object(runtime, ANNOTATIONS, "runtimeConfig." ANNOTATIONS,
			&pod, &call->failure);
	if (r)
		return r;
	wrong = annotations_add(&asker->annotations, pod, NULL);
	return wrong ? failure_set(&call->failure, CNI_BAD_CONFIG,
				   "annotation %s: %s: is not a string",
				   wrong->string, json_show(wrong).text)
		     : 0;
}

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
