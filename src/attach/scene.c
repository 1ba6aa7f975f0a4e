/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/scene.h"

#include <string.h>

#include "kernel/hook.h"

struct look {
	struct natra *n;
	const char *ifname;
	struct scene *scene;
};

static int note_program(void *arg, const struct hook_program *program)
{
	struct scene *scene = arg;

	if (hook_program_is_natra(program))
		scene->foreign_natra = true;
	else
		scene->others = true;
	return 0;
}

/* Runs in the pod's namespace. */
static int look_around(void *arg)
{
	struct look *look = arg;
	struct scene *scene = look->scene;
	cleanup_netlink struct netlink nl = {0};
	int r;

	r = netns_self(scene->pod_fd, &scene->pod_netns);
	if (r < 0)
		return fail_errno(look->n, r, "identify the network namespace");
	r = netlink_open(look->n, &nl);
	if (r == 0)
		r = link_by_name(look->n, &nl, look->ifname, &scene->pod);
	for (int ingress = 0; ingress < 2 && r == 0; ingress++) {
		struct hook hook = {scene->pod.ifindex, ingress};

		r = hook_tcx_list(look->n, &hook, note_program, scene);
		if (r == 0)
			r = hook_clsact_list(look->n, &nl, &hook, note_program,
					     scene);
	}
	return r;
}

int scene_look(struct natra *n, int pod_fd, const char *ifname,
	       struct scene *ret_scene)
{
	struct scene scene = {.pod_fd = pod_fd};
	struct look look = {n, ifname, &scene};
	int r;

	r = netns_self(-1, &scene.host_netns);
	if (r < 0)
		return fail_errno(n, r, "identify the network namespace");
	r = netns_run(n, pod_fd, look_around, &look);
	if (r < 0)
		return r;
	*ret_scene = scene;
	return 0;
}
