/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions on attachments. They check what the caller gave, take
 * the locks and call the shaper. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/internal.h"
#include "api/structs.h"
#include "attach/attachment.h"
#include "attach/check.h"
#include "attach/leftovers.h"
#include "attach/limits.h"
#include "attach/shaper.h"
#include "attach/teardown.h"
#include "kernel/feature.h"
#include "state/engine.h"
#include "util/cleanup.h"
#include "util/str.h"

static int check_policy(struct natra *n, const struct natra_policy *policy,
			struct natra_policy *ret_policy)
{
	int r = struct_in(n, "policy", ret_policy, sizeof(*ret_policy), policy);

	return r < 0 ? r : policy_check(ret_policy, n->error, sizeof(n->error));
}

/*
 * Reads and checks a policy. The caller's lists become *ret_subnets. Their
 * lengths stay in the policy; a caller may also give a length without a list.
 */
static int read_policy(struct natra *n, const struct natra_policy *policy,
		       struct natra_policy *ret_policy,
		       struct subnets *ret_subnets)
{
	struct natra_policy p;
	int r = check_policy(n, policy, &p);

	if (r < 0)
		return r;
	r = subnets_read(&p, ret_subnets);
	if (r < 0)
		return fail_errno(n, r, "read the subnets");
	if (ret_subnets->kind == NATRA_SUBNETS_SHAPED)
		p.shaped_subnets_len = ret_subnets->len;
	if (ret_subnets->kind == NATRA_SUBNETS_UNSHAPED)
		p.unshaped_subnets_len = ret_subnets->len;
	p.shaped_subnets = NULL;
	p.unshaped_subnets = NULL;
	*ret_policy = p;
	return 0;
}

int natra_policy_check(struct natra *n, const struct natra_policy *policy)
{
	struct natra_policy p;

	if (!n)
		return -EINVAL;
	return finish(n, check_policy(n, policy, &p));
}

/* Reads the environment, which decides only what the policy leaves to
 * `auto`. */
static int read_environment(struct natra *n, struct natra_policy *p)
{
	const char *mode = secure_getenv("NATRA_ATTACH_MODE");
	const char *edt = secure_getenv("NATRA_EDT_PACING");

	if (mode && p->mode == NATRA_MODE_AUTO &&
	    natra_parse_mode(mode, &p->mode) < 0)
		return refuse(n, -EINVAL,
			      "NATRA_ATTACH_MODE: '%s' is not a mode", mode);
	if (edt && p->edt == NATRA_EDT_AUTO &&
	    natra_parse_edt(edt, &p->edt) < 0)
		return refuse(n, -EINVAL,
			      "NATRA_EDT_PACING: '%s' is not auto, on or off",
			      edt);
	return 0;
}

static int refuse_foreign(struct natra *n, const struct scene *scene,
			  const char *id)
{
	char owner[NATRA_ID_MAX + 1];
	int r;

	if (!scene->foreign_natra)
		return 0;
	r = attachment_owner(n, &scene->pod_netns, scene->pod.ifindex, owner);
	if (r == -ENOENT) {
		log_line(n, NATRA_LOG_WARN,
			 "%s: '%s' has natra programs that nobody here pinned",
			 id, scene->pod.ifname);
		return 0;
	}
	if (r == 0 && strcmp(owner, id) != 0)
		return refuse(n, -EBUSY, "interface '%s' is attached as '%s'",
			      scene->pod.ifname, owner);
	return r;
}

/* An order, and what it holds until it is carried out. */
struct admission {
	struct natra_target target;
	int netns_fd;
	struct pin_dir netns_lock;
	struct pin_dir dir;
	char id[NATRA_ID_MAX + 1];
	struct order order;
};

#define ADMISSION_INIT                                                         \
	{                                                                      \
		.netns_fd = -1, .netns_lock = PIN_DIR_INIT,                    \
		.dir = PIN_DIR_INIT                                            \
	}

static void admission_close(struct admission *a)
{
	pin_dir_unlock(&a->dir);
	pin_dir_unlock_netns(&a->netns_lock);
	cleanup_closep(&a->netns_fd);
	subnets_free(&a->order.subnets);
}
#define cleanup_admission __attribute__((cleanup(admission_close)))

/* Reads and checks what the caller gave, without asking the kernel. */
static int read_order(struct natra *n, const struct natra_target *target,
		      const struct natra_policy *policy, struct admission *a)
{
	const struct natra_policy *p = &a->order.policy;
	int r;

	r = target_in(n, target, &a->target);
	if (r == 0)
		r = read_policy(n, policy, &a->order.policy, &a->order.subnets);
	if (r < 0)
		return r;
	if (!a->target.ifname || !a->target.ifname[0])
		return refuse(n, -EINVAL, "ifname: missing");
	if (!p->ingress_rate_bits_per_sec && !p->egress_rate_bits_per_sec)
		return refuse(
			n, -EINVAL,
			"ingress_rate_bits_per_sec, egress_rate_bits_per_sec: at least one is needed");
	if (p->shaped_subnets_len + p->unshaped_subnets_len !=
	    a->order.subnets.len)
		return refuse(n, -EINVAL,
			      "%s_subnets: missing, but their number",
			      p->shaped_subnets_len ? "shaped" : "unshaped");
	return 0;
}

/* Finds the interface, and excludes everybody else from it and from the id. */
static int admit(struct natra *n, struct admission *a)
{
	const struct natra_target *t = &a->target;
	struct scene *scene = &a->order.scene;
	int r;

	r = netns_open(n, t, &a->netns_fd);
	/* The namespace is locked first, so that of two ids for one interface
	 * the second sees the first. */
	if (r == 0)
		r = pin_dir_lock_netns(n, a->netns_fd, &a->netns_lock);
	if (r == 0)
		r = scene_look(n, a->netns_fd, t->ifname, scene);
	if (r < 0)
		return r;

	if (t->id && t->id[0])
		(void)str_copy(a->id, sizeof(a->id), t->id);
	else
		(void)snprintf(a->id, sizeof(a->id), "%" PRIu64 "-%s",
			       scene->pod_netns.inode, t->ifname);
	a->order.id = a->id;
	a->order.network = t->network;
	a->order.label = t->label;
	r = refuse_foreign(n, scene, a->id);
	return r < 0 ? r : pin_dir_lock_id(n, a->id, true, &a->dir);
}

/* Removes the programs that nobody uses any more, after a detach and after an
 * attach that failed. */
static void drop_unused(struct natra *n)
{
	KEEP_ERROR_SCOPE(n);

	if (n->keep_programs)
		return;
	if (engine_sweep(n) < 0)
		log_line(n, NATRA_LOG_WARN, "unused programs stay: %s",
			 last_error(n));
}

static int warn_before_ours(void *arg, const struct natra_neighbour *entry)
{
	if (entry->is_before_ours)
		log_line(
			arg, NATRA_LOG_WARN,
			"program %u '%s' on the %s %s of '%s' runs before natra: what it accepts or redirects is not limited",
			entry->prog_id, entry->prog_name, entry->hook,
			entry->hook_is_ingress ? "ingress" : "egress",
			entry->ifname);
	return 0;
}

/* Logs whose limits hold beside natra's, and which programs run before
 * natra's. */
static void warn_of_others(struct natra *n, const struct order *order,
			   const struct record *record)
{
	leftovers_warn(n, &order->scene.pod, order->scene.pod_fd);
	if (order->scene.others || record->host.ifindex)
		(void)natra_foreach_neighbour(n, order->id, warn_before_ours,
					      n);
}

int natra_attach(struct natra *n, const struct natra_target *target,
		 const struct natra_policy *policy, struct natra_info *ret_info)
{
	cleanup_admission struct admission a = ADMISSION_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_info info;
	int r;

	if (!n)
		return -EINVAL;
	r = read_order(n, target, policy, &a);
	if (r == 0 && ret_info)
		r = struct_out_check(n, "ret_info", ret_info);
	if (r == 0)
		r = read_environment(n, &a.order.policy);
	if (r < 0)
		return r;
	r = admit(n, &a);
	if (r < 0)
		return feature_blame(n, r);
	r = shaper_attach(n, &a.dir, &a.order, &gen);
	if (r < 0) {
		pin_dir_remove(&a.dir); /* the kernel refuses if it is in use */
		drop_unused(n);
		return feature_blame(n, r);
	}
	if (n->log_fn)
		warn_of_others(n, &a.order, &gen.record);
	if (!ret_info)
		return finish(n, 0);
	info_of(&gen, &info);
	info.program_is_current = true;
	return finish(n,
		      struct_out(n, "ret_info", ret_info, &info, sizeof(info)));
}

int natra_record_unshaped(struct natra *n, const struct natra_target *target,
			  const struct natra_policy *policy, const char *reason)
{
	cleanup_admission struct admission a = ADMISSION_INIT;
	char line[RECORD_REASON_MAX];
	int r;

	if (!n)
		return -EINVAL;
	if (!reason || !reason[0])
		return refuse(n, -EINVAL, "reason: missing");
	/* The reason is copied first of all: it may be the handle's own error
	 * text. */
	(void)str_copy(line, sizeof(line), reason);
	str_one_line(line);
	r = read_order(n, target, policy, &a);
	if (r < 0)
		return r;
	r = admit(n, &a);
	if (r < 0)
		return feature_blame(n, r);
	r = shaper_record(n, &a.dir, &a.order, line);
	if (r < 0)
		pin_dir_remove(&a.dir);
	return finish(n, r);
}

/* Attaches again with what is on record, because a direction or the build is
 * new. */
static int reattach(struct natra *n, const struct pin_dir *dir,
		    const struct pin_gen *gen,
		    const struct natra_policy *policy)
{
	const struct record *record = &gen->record;
	cleanup_subnets struct subnets subnets = {0};
	struct order order = {
		.id = record->id,
		.network = record->network,
		.label = record->label,
		.policy = *policy,
	};
	cleanup_pin_gen struct pin_gen attached = PIN_GEN_INIT;
	cleanup_close int fd = -1;
	int r;

	r = attachment_read_subnets(n, gen, &subnets);
	if (r == 0)
		r = attachment_open_netns(n, &record->pod, -1, &fd);
	if (r == 0)
		r = scene_look(n, fd, record->pod.ifname, &order.scene);
	if (r < 0)
		return r;
	order.subnets = subnets;
	r = shaper_attach(n, dir, &order, &attached);
	if (r < 0)
		drop_unused(n);
	return r;
}

/* Fills in the fields that are fixed while attached. A 0 keeps mode, edt,
 * ingress_mode and sketch_width; returns -EINVAL if one of them, or the
 * subnets, differ from what is attached. */
static int merge_fixed(struct natra *n, const struct pin_gen *gen,
		       struct natra_policy *p, const struct subnets *subnets)
{
	struct natra_policy policy = record_get_policy(&gen->record);
	const struct natra_policy *before = &policy;
	cleanup_subnets struct subnets pinned = {0};
	int r;

	if (!p->mode)
		p->mode = before->mode;
	if (!p->edt)
		p->edt = before->edt;
	if (!p->ingress_mode)
		p->ingress_mode = before->ingress_mode;
	if (!p->sketch_width)
		p->sketch_width = before->sketch_width;
	if (!policy_same_shape(before, p))
		return refuse(
			n, -EINVAL,
			"mode, edt, ingress_mode, sketch_width, subnets: fixed while attached");
	if (!subnets->len)
		return 0; /* none are there, or they are only counted */
	r = attachment_read_subnets(n, gen, &pinned);
	if (r == 0 && !subnets_equal(&pinned, subnets))
		return refuse(n, -EINVAL, "subnets: fixed while attached");
	return r;
}

static int refuse_unshaped(struct natra *n, int r, const struct record *record)
{
	return refuse(n, r, "'%s' runs without its limits: %s", record->id,
		      record->reason);
}

static int refuse_gone(struct natra *n, const struct pin_gen *gen)
{
	int r = check_exists(n, gen);

	if (r == 0)
		return refuse(n, -ENODEV, "interface '%s' of '%s' is gone",
			      gen->record.pod.ifname, gen->record.id);
	return r < 0 ? r : 0;
}

int natra_configure(struct natra *n, const char *id,
		    const struct natra_policy *policy)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets subnets = {0};
	struct natra_policy before, p;
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = read_policy(n, policy, &p, &subnets);
	if (r == 0)
		r = attachment_lock(n, id, &dir, &gen);
	if (r < 0)
		return r;
	if (gen.record.unshaped)
		return refuse_unshaped(n, -EOPNOTSUPP, &gen.record);
	before = record_get_policy(&gen.record);
	if (!p.shaped_subnets_len && !p.unshaped_subnets_len) {
		p.shaped_subnets_len = before.shaped_subnets_len;
		p.unshaped_subnets_len = before.unshaped_subnets_len;
	}
	r = merge_fixed(n, &gen, &p, &subnets);
	if (r < 0)
		return r;
	r = refuse_gone(n, &gen);
	if (r < 0)
		return r;
	if (!limits_cover(&gen.record, &p))
		r = reattach(n, &dir, &gen, &p);
	else
		r = limits_set(n, &gen, &p);
	return finish(n, r);
}

int natra_upgrade(struct natra *n, const char *id)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_policy policy;
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = attachment_lock(n, id, &dir, &gen);
	if (r == -ESTALE && gen.abi < NATRA_PIN_ABI)
		return refuse(
			n, r,
			"the limits of '%s' were pinned by ABI %u and cannot be read by this one, %d: attach it again",
			id, gen.abi, NATRA_PIN_ABI);
	if (r < 0)
		return r;
	if (gen.record.unshaped)
		return refuse_unshaped(n, -EOPNOTSUPP, &gen.record);
	r = refuse_gone(n, &gen);
	if (r < 0)
		return r;
	policy = record_get_policy(&gen.record);
	return finish(n, reattach(n, &dir, &gen, &policy));
}

/* Finds the id that a target means: its own, or that of what is attached to the
 * interface. */
static int resolve_id(struct natra *n, const struct natra_target *t, int fd,
		      char *ret_id)
{
	struct scene scene;
	int r;

	if (t->id && t->id[0]) {
		(void)str_copy(ret_id, NATRA_ID_MAX + 1, t->id);
		return 0;
	}
	if (!t->ifname || !t->ifname[0])
		return refuse(n, -EINVAL, "id, ifname: one is needed");
	r = scene_look(n, fd, t->ifname, &scene);
	if (r < 0)
		return r;
	return attachment_owner(n, &scene.pod_netns, scene.pod.ifindex, ret_id);
}

int natra_detach(struct natra *n, const struct natra_target *target)
{
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	char id[NATRA_ID_MAX + 1];
	struct natra_target t;
	cleanup_close int fd = -1;
	int r;

	if (!n)
		return -EINVAL;
	r = target_in(n, target, &t);
	if (r < 0)
		return r;
	/* If there is an id, the namespace only helps to find the interface. */
	r = netns_open(n, &t, &fd);
	if (r == -ENOENT || (r == -EINVAL && t.netns)) {
		/* The namespace is gone, or the path is the empty file that was
		 * its mount point. */
		if (!t.id || !t.id[0])
			return finish(n, 0);
	} else if (r < 0) {
		return r;
	}
	r = resolve_id(n, &t, fd, id);
	if (r == -ENOENT || r == -ENODEV)
		return finish(n, 0);
	if (r == 0)
		r = pin_dir_lock_id(n, id, false, &dir);
	if (r == 0)
		r = teardown_all(n, &dir, NULL, fd);
	if (r == 0)
		pin_dir_remove(&dir);
	/* This is also done if nothing was attached: the last call may have
	 * failed just here. */
	if ((r == 0 || r == -ENOENT) && !n->keep_programs)
		r = engine_sweep(n);
	return finish(n, r == -ENOENT ? 0 : r);
}

int natra_check(struct natra *n, const char *id,
		const struct natra_policy *policy)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets subnets = {0};
	struct natra_policy have, want;
	int r;

	r = require_id(n, id);
	if (r < 0)
		return r;
	if (policy) {
		r = read_policy(n, policy, &want, &subnets);
		if (r < 0)
			return r;
	}
	r = attachment_find(n, id, &gen);
	if (r == 0)
		r = check_attached(n, &gen, -1);
	if (r == 0 && gen.record.unshaped)
		return refuse_unshaped(n, -EBADE, &gen.record);
	if (r == 0)
		r = check_limits(n, &gen);
	if (r < 0 || !policy)
		return finish(n, r);

	r = merge_fixed(n, &gen, &want, &subnets);
	if (r < 0)
		return r == -EINVAL ? -EBADE : r;
	have = record_get_policy(&gen.record);
	have = policy_effective(&have);
	want = policy_effective(&want);
	/* The struct has no padding, so its bytes can be compared: it has
	 * eight members of 64 bits, six of 32 bits, and four of the size of
	 * pointers. */
	if (memcmp(&have, &want, sizeof(have)) != 0)
		return refuse(n, -EBADE,
			      "'%s' was set to other limits than these", id);
	return finish(n, 0);
}

int natra_foreach_neighbour(struct natra *n, const char *id,
			    natra_neighbour_fn fn, void *arg)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r;

	r = require_id(n, id);
	if (r == 0 && !fn)
		r = refuse(n, -EINVAL, "fn: missing");
	if (r < 0)
		return r;
	r = attachment_find(n, id, &gen);
	return r < 0 ? r : finish(n, check_neighbours(n, &gen, fn, arg));
}

int natra_find(struct natra *n, const struct natra_target *target, char *ret_id)
{
	char id[NATRA_ID_MAX + 1];
	struct natra_target t;
	cleanup_close int fd = -1;
	int r;

	if (!n)
		return -EINVAL;
	if (!ret_id)
		return refuse(n, -EINVAL, "ret_id: missing");
	r = target_in(n, target, &t);
	if (r == 0)
		r = netns_open(n, &t, &fd);
	if (r < 0)
		return r;
	t.id = NULL;
	r = resolve_id(n, &t, fd, id);
	if (r == -ENOENT)
		return refuse(n, r, "nothing is attached to '%s'", t.ifname);
	if (r == 0)
		(void)str_copy(ret_id, NATRA_ID_MAX + 1, id);
	return finish(n, r);
}
