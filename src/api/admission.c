/* SPDX-License-Identifier: BSD-2-Clause */
#include "api/admission.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/structs.h"
#include "attach/attachment.h"
#include "util/cleanup.h"
#include "util/str.h"

int admission_read(struct natra *n, const struct natra_target *target,
		   const struct natra_policy *policy, struct admission *a)
{
	const struct natra_policy *p = &a->order.policy;
	int r;

	r = target_in(n, target, &a->target);
	if (r == 0)
		r = policy_in(n, policy, &a->order.policy, &a->automatic,
			      &a->order.subnets);
	if (r < 0)
		return r;
	if (!a->target.ifname || !a->target.ifname[0])
		return refuse(n, -EINVAL, "ifname: missing");
	if (p->shaped_subnets_len + p->unshaped_subnets_len !=
	    a->order.subnets.len)
		return refuse(n, -EINVAL,
			      "%s_subnets: NULL, but its length is not 0",
			      p->shaped_subnets_len ? "shaped" : "unshaped");
	if (p->classes_len != a->order.subnets.classes_len)
		return refuse(n, -EINVAL,
			      "classes: NULL, but its length is not 0");
	return 0;
}

int admission_id(struct natra *n, const struct natra_target *target,
		 int netns_fd, char *ret_id)
{
	uint64_t inode;
	int r;

	if (target->id && target->id[0]) {
		(void)str_copy(ret_id, NATRA_ID_MAX + 1, target->id);
		return 0;
	}
	r = netns_inode(n, netns_fd, &inode);
	if (r < 0)
		return r;
	(void)snprintf(ret_id, NATRA_ID_MAX + 1, "%" PRIu64 "-%s", inode,
		       target->ifname);
	return 0;
}

int admission_lock(struct natra *n, struct admission *a)
{
	const struct natra_target *t = &a->target;
	struct scene *scene = &a->order.scene;
	int r;

	r = netns_open(n, t, &a->netns_fd);
	/* The namespace is locked first, so that of two ids for one interface
	 * the second sees the first. */
	if (r == 0)
		r = pin_dir_name_lock(
			n, pin_dir_lock_netns(n, a->netns_fd, &a->netns_lock),
			t->ifname);
	if (r == 0)
		r = admission_id(n, t, a->netns_fd, a->id);
	if (r == 0)
		r = scene_look_named(n, a->netns_fd, a->id, t->ifname, scene);
	if (r < 0)
		return r;

	a->order.id = a->id;
	a->order.network = t->network;
	a->order.label = t->label;
	r = scene_refuse_other(n, scene, a->id);
	return r < 0 ? r : pin_dir_lock_id(n, a->id, true, &a->dir);
}

void admission_close(struct admission *a)
{
	pin_dir_unlock(&a->dir);
	pin_dir_unlock_netns(&a->netns_lock);
	cleanup_closep(&a->netns_fd);
	subnets_free(&a->order.subnets);
}
