/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions on what upstream's bandwidth plugin left. */
#include <errno.h>
#include <string.h>

#include "api/structs.h"
#include "attach/attachment.h"
#include "attach/identity.h"
#include "attach/leftovers.h"
#include "attach/limits.h"
#include "attach/order.h"
#include "attach/scene.h"
#include "util/cleanup.h"
#include "util/str.h"

/* Looks up the interface that has a name. It has to be that of the id, as for natra_attach: the
 * limits that a drain lifts, and a removal restores, are those of the id. */
static int look_named(struct natra *n, const struct natra_target *t, int pod_fd,
		      struct scene *ret_scene)
{
	cleanup_pin_gen struct pin_gen attached = PIN_GEN_INIT;
	struct pin_dir dir = PIN_DIR_INIT;
	const char *id = t->id ? t->id : "";
	int r = scene_look_named(n, pod_fd, id, t->ifname, ret_scene);

	if (r < 0 || !id[0])
		return r;
	r = pin_dir_path(n, id, dir.path);
	if (r == 0)
		r = order_look_before(n, &dir, ret_scene, &attached);
	return r < 0 ? r : 0;
}

/* Finds the interface that the caller means and what is left beside it. */
static int begin(struct natra *n, const struct natra_target *target,
		 struct netlink *ret_nl, struct leftovers *ret_leftovers)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_close int pod_fd = -1;
	struct natra_target t;
	struct scene scene;
	int r;

	if (!begin_call(n))
		return -EINVAL;
	r = target_in(n, target, &t);
	if (r < 0)
		return r;
	if (t.ifname && t.ifname[0]) {
		r = netns_open(n, &t, &pod_fd);
		if (r == 0)
			r = look_named(n, &t, pod_fd, &scene);
	} else if (t.id && t.id[0]) {
		/* An id alone stands for the interface that is on record. */
		r = attachment_find_any(n, t.id, &gen);
		if (r == 0)
			r = attachment_open_netns(n, &gen.record.pod, -1,
						  &pod_fd);
		if (r == 0)
			r = scene_look_recorded(n, pod_fd, &gen.record.pod,
						&scene);
		/* A pod can put another one of its interfaces in that place. */
		if (r == 0)
			r = identity_check(n, &gen, pod_fd, scene.pod.ifindex,
					   NULL);
	} else {
		return refuse(n, -EINVAL, "id, ifname: one is needed");
	}
	if (r == 0)
		r = netlink_open(n, ret_nl);
	return r < 0 ? r
		     : leftovers_find(n, ret_nl, &scene.pod, pod_fd,
				      ret_leftovers);
}

int natra_find_leftovers(struct natra *n, const struct natra_target *target,
			 struct natra_leftovers *ret_leftovers)
{
	cleanup_netlink struct netlink nl = {0};
	struct natra_leftovers found = {0};
	struct leftovers l;
	int r = begin(n, target, &nl, &l);

	if (r < 0)
		return r;
	(void)str_copy(found.host_ifname, sizeof(found.host_ifname),
		       l.host.ifname);
	found.limits_ingress = l.root.qdisc.kind[0] != '\0';
	found.is_htb = strcmp(l.root.qdisc.kind, "htb") == 0;
	found.limits_egress = l.redirect.handle != 0;
	(void)str_copy(found.ifb_ifname, sizeof(found.ifb_ifname),
		       l.ifb.ifname);
	found.waiting_ns = leftovers_wait_ns(&l);
	return finish(n, struct_out(n, "ret_leftovers", ret_leftovers,
				    EXTENT_LEFTOVERS, &found));
}

/* Restores natra's own limits, if it has attached anything by the id that the caller gave;
 * or lifts them in some legs, if `lifted` is not NULL, see limits_lift. */
static int lift_or_restore(struct natra *n, const struct natra_target *target,
			   const bool lifted[LEG_MAX],
			   struct pin_dir *ret_lifting)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_target t;
	int r = target_in(n, target, &t);

	if (r < 0 || !t.id || !t.id[0])
		return r;
	r = attachment_lock(n, t.id, &dir, &gen);
	/* Limits of another ABI cannot be told apart from no limits. */
	if (r == -ENOENT || r == -ESTALE)
		return 0;
	if (r < 0 || gen.record.unshaped)
		return r;
	return lifted ? limits_lift(n, &gen, lifted, ret_lifting)
		      : limits_restore(n, &gen);
}

/* Gives all limits back, for which the lock is waited for even if the caller's program
 * is to end. The error text of a drain that has failed stays. */
static int restore(struct natra *n, const struct natra_target *target,
		   bool has_failed)
{
	const natra_cancelled_fn asked = n->cancelled_fn;
	struct kept_error kept = keep_error(n);
	int r;

	n->cancelled_fn = NULL;
	r = lift_or_restore(n, target, NULL, NULL);
	n->cancelled_fn = asked;
	if (has_failed)
		restore_error(&kept);
	return r;
}

/* Lifts natra's limits only in the directions in which upstream's queues drain. */
static int drain(struct natra *n, const struct natra_target *target,
		 struct netlink *nl, const struct leftovers *l)
{
	const bool lifted[LEG_MAX] = {
		[LEG_INGRESS] = l->root.qdisc.kind[0],
		[LEG_HOST] = l->root.qdisc.kind[0],
		[LEG_EGRESS] = l->ifb_root.qdisc.kind[0],
	};
	cleanup_pin_dir struct pin_dir lifting = PIN_DIR_INIT;
	int r = lift_or_restore(n, target, lifted, &lifting), restored;

	if (r == 0)
		r = leftovers_drain(n, nl, l);
	restored = restore(n, target, r < 0);
	return r < 0 ? r : restored;
}

int natra_drain_leftovers(struct natra *n, const struct natra_target *target)
{
	cleanup_netlink struct netlink nl = {0};
	struct leftovers l;
	int r = begin(n, target, &nl, &l);

	if (r == 0)
		r = leftovers_wait_ns(&l) ? drain(n, target, &nl, &l)
					  : leftovers_drain(n, &nl, &l);
	return r < 0 ? r : finish(n, r);
}

int natra_remove_leftovers(struct natra *n, const struct natra_target *target)
{
	cleanup_netlink struct netlink nl = {0};
	struct leftovers l;
	int r = begin(n, target, &nl, &l);

	/* A process that was killed while it let them drain has left the pod without
	 * natra's limits. */
	if (r == 0)
		r = restore(n, target, false);
	if (r == 0)
		r = leftovers_remove(n, &nl, &l);
	return r < 0 ? r : finish(n, r);
}
