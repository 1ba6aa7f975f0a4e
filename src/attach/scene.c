/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/scene.h"

#include <errno.h>
#include <string.h>

#include "attach/attachment.h"
#include "attach/identity.h"
#include "kernel/hook.h"

struct look {
	struct natra *n;
	const char *ifname;
	uint32_t ifindex; /* 0: the interface is the one that has the name */
	struct scene *scene;
};

static int note_program(void *arg, const struct hook_program *program)
{
	struct scene *scene = arg;

	/* It may be natra's. */
	scene->is_cut |= program->is_hidden;
	if (hook_program_is_natra(program))
		scene->foreign_natra = true;
	else
		scene->others = true;
	return 0;
}

static int find_pod(const struct look *look, struct netlink *nl)
{
	struct link_info *pod = &look->scene->pod;

	return look->ifindex ? link_on_record(look->n, nl, look->ifindex,
					      look->ifname, pod)
			     : link_by_name(look->n, nl, look->ifname, pod);
}

static int look_at_hooks(struct natra *n, struct scene *scene, uint32_t ifindex)
{
	int r = 0;

	for (int ingress = 0; ingress < 2 && r == 0; ingress++) {
		struct hook hook = {ifindex, ingress};
		bool is_cut = false;

		r = hook_tcx_list(n, &hook, note_program, scene);
		if (r == 0)
			r = hook_clsact_list(n, &hook, note_program, scene,
					     &is_cut);
		scene->is_cut |= is_cut;
	}
	return r;
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
		r = find_pod(look, &nl);
	return r < 0 ? r : look_at_hooks(look->n, scene, scene->pod.ifindex);
}

static int look_at(struct natra *n, int pod_fd, const char *ifname,
		   uint32_t ifindex, struct scene *ret_scene)
{
	struct scene scene = {.pod_fd = pod_fd};
	struct look look = {n, ifname, ifindex, &scene};
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

int scene_look(struct natra *n, int pod_fd, const char *ifname,
	       struct scene *ret_scene)
{
	return look_at(n, pod_fd, ifname, 0, ret_scene);
}

int scene_look_recorded(struct natra *n, int pod_fd,
			const struct record_link *link, struct scene *ret_scene)
{
	struct scene scene;
	int r = look_at(n, pod_fd, link->ifname, link->ifindex, &scene);

	/* Another namespace has other interfaces of the same numbers. */
	if (r == 0 && scene.pod_netns.cookie != link->netns_cookie)
		return refuse(n, -ENODEV, "the netns of '%s' is another one",
			      link->ifname);
	if (r == 0)
		*ret_scene = scene;
	return r;
}

/* Returns whether an unshaped record's index is another interface's by now. No program tells where
 * its own one is; and since there are none to look for, any namespace will do. */
static bool is_taken(struct natra *n, const struct record *record,
		     const struct link_info *pod)
{
	return record->unshaped &&
	       identity_look(n, record, pod) == IDENTITY_OTHER;
}

int scene_look_named(struct natra *n, int pod_fd, const char *id,
		     const char *ifname, struct scene *ret_scene)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r = id[0] ? attachment_find_any(n, id, &gen) : -ENOENT;
	const bool is_attached = r == 0;

	if (is_attached && strcmp(gen.record.pod.ifname, ifname) == 0) {
		r = scene_look_recorded(n, pod_fd, &gen.record.pod, ret_scene);
		if (r != -ENODEV &&
		    (r < 0 || !is_taken(n, &gen.record, &ret_scene->pod)))
			return r;
	} else if (r < 0 && r != -ENOENT) {
		return r;
	}
	r = scene_look(n, pod_fd, ifname, ret_scene);
	return is_attached ? identity_explain(n, &gen, r) : r;
}

/* Looks at the hooks of the host side, if there is one: a hostside mode has nothing in the pod. */
static int look_at_host(struct natra *n, const struct scene *scene,
			struct scene *ret_host)
{
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(n, &nl);

	if (r < 0)
		return r;
	r = link_host_peer(n, &nl, &scene->pod, scene->pod_fd, &ret_host->pod);
	if (r == -EOPNOTSUPP) {
		forget_error(n);
		return 0;
	}
	ret_host->pod_netns = scene->host_netns;
	return r < 0 ? r : look_at_hooks(n, ret_host, ret_host->pod.ifindex);
}

/* Warns of programs of natra's on an interface of a scene that nothing is attached to. */
static int warn_beside(struct natra *n, const struct scene *at, const char *id)
{
	char owner[NATRA_ID_MAX + 1];
	int r = attachment_owner(n, &at->pod_netns, at->pod.ifindex, true,
				 owner);

	if (r == -ENOENT && at->foreign_natra)
		log_line(
			n, NATRA_LOG_WARN,
			"%s: '%s' has natra programs without a record in this bpffs",
			id, at->pod.ifname);
	else if (r == 0 && strcmp(owner, id) != 0)
		log_line(
			n, NATRA_LOG_WARN,
			"%s: '%s' at one end of this veth has the limits of '%s', which hold as well",
			id, at->pod.ifname, owner);
	return r == -ENOENT ? 0 : r;
}

int scene_refuse_other(struct natra *n, const struct scene *scene,
		       const char *id)
{
	struct scene at = *scene;
	char owner[NATRA_ID_MAX + 1];
	int r = at.foreign_natra || at.is_cut ? 0 : look_at_host(n, scene, &at);

	if (r < 0 || !(at.foreign_natra || at.is_cut))
		return r;
	r = attachment_owner(n, &scene->pod_netns, scene->pod.ifindex, false,
			     owner);
	if (r == -ENOENT)
		return warn_beside(n, &at, id);
	if (r == 0 && strcmp(owner, id) != 0)
		return with_code(n, NATRA_CODE_OTHER_ID,
				 refuse(n, -EBUSY,
					"interface '%s' is attached as '%s'",
					at.pod.ifname, owner));
	return r;
}
