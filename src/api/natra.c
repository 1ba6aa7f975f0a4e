/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions on attachments: validate, lock, call the shaper. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/internal.h"
#include "api/structs.h"
#include "attach/check.h"
#include "attach/leftovers.h"
#include "attach/limits.h"
#include "attach/shaper.h"
#include "attach/teardown.h"
#include "kernel/feature.h"
#include "kernel/netns_find.h"
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
 * The caller's lists become *ret_subnets; their lengths stay in the policy, and
 * may stand there without a list.
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

/* The environment stands in for `auto` only. */
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
	r = find_owner(n, &scene->pod_netns, scene->pod.ifindex, owner);
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

/* An interface and what it is to have. */
struct order {
	struct natra_target target;
	struct natra_policy policy;
	struct subnets subnets;
	int netns_fd;
	struct pin_key netns; /* the lock on the network namespace */
	struct scene scene;
	struct pin_key key;
	char id[NATRA_ID_MAX + 1];
	struct request request;
};

#define ORDER_INIT                                                             \
	{                                                                      \
		.netns_fd = -1, .netns = PIN_KEY_INIT, .key = PIN_KEY_INIT     \
	}

static void order_close(struct order *o)
{
	pin_unlock(&o->key);
	pin_unlock_netns(&o->netns);
	cleanup_closep(&o->netns_fd);
	subnets_free(&o->subnets);
}
#define cleanup_order __attribute__((cleanup(order_close)))

/* What can be told without the kernel. */
static int order_read(struct natra *n, const struct natra_target *target,
		      const struct natra_policy *policy, struct order *o)
{
	const struct natra_policy *p = &o->policy;
	int r;

	r = target_in(n, target, &o->target);
	if (r == 0)
		r = read_policy(n, policy, &o->policy, &o->subnets);
	if (r < 0)
		return r;
	if (!o->target.ifname || !o->target.ifname[0])
		return refuse(n, -EINVAL, "ifname: missing");
	if (!p->ingress_rate_bits_per_sec && !p->egress_rate_bits_per_sec)
		return refuse(
			n, -EINVAL,
			"ingress_rate_bits_per_sec, egress_rate_bits_per_sec: at least one is needed");
	if (p->shaped_subnets_len + p->unshaped_subnets_len != o->subnets.len)
		return refuse(n, -EINVAL,
			      "%s_subnets: missing, but their number",
			      p->shaped_subnets_len ? "shaped" : "unshaped");
	return 0;
}

/* Finds the interface, and excludes everybody else from it and from the id. */
static int order_take(struct natra *n, struct order *o)
{
	const struct natra_target *t = &o->target;
	int r;

	r = netns_open(n, t, &o->netns_fd);
	/* So that of two ids for one interface the second sees the first. */
	if (r == 0)
		r = pin_lock_netns(n, o->netns_fd, &o->netns);
	if (r == 0)
		r = scene_look(n, o->netns_fd, t->ifname, &o->scene);
	if (r < 0)
		return r;

	if (t->id && t->id[0])
		(void)str_copy(o->id, sizeof(o->id), t->id);
	else
		(void)snprintf(o->id, sizeof(o->id), "%" PRIu64 "-%s",
			       o->scene.pod_netns.inode, t->ifname);
	o->request = (struct request){
		.id = o->id,
		.network = t->network,
		.label = t->label,
		.policy = &o->policy,
		.subnets = &o->subnets,
	};
	r = refuse_foreign(n, &o->scene, o->id);
	return r < 0 ? r : pin_lock(n, o->id, true, &o->key);
}

/* When something went, or did not come: nothing may be left of the last one. */
static void drop_unused(struct natra *n)
{
	char error[HANDLE_ERROR_MAX];

	if (n->keep_programs)
		return;
	(void)str_copy(error, sizeof(error), last_error(n));
	if (engine_sweep(n) < 0)
		log_line(n, NATRA_LOG_WARN, "unused programs stay: %s",
			 last_error(n));
	(void)str_copy(n->error, sizeof(n->error), error);
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

/* Whose limits hold too, and who runs before natra. */
static void warn_of_others(struct natra *n, const struct order *o,
			   const struct meta *meta)
{
	leftovers_warn(n, &o->scene.pod, o->netns_fd);
	if (o->scene.others || meta->host.ifindex)
		(void)natra_foreach_neighbour(n, o->id, warn_before_ours, n);
}

int natra_attach(struct natra *n, const struct natra_target *target,
		 const struct natra_policy *policy, struct natra_info *ret_info)
{
	cleanup_order struct order o = ORDER_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_info info;
	int r;

	if (!n)
		return -EINVAL;
	r = order_read(n, target, policy, &o);
	if (r == 0 && ret_info)
		r = struct_out_check(n, "ret_info", ret_info);
	if (r == 0)
		r = read_environment(n, &o.policy);
	if (r < 0)
		return r;
	r = order_take(n, &o);
	if (r < 0)
		return feature_blame(n, r);
	r = shaper_attach(n, &o.key, &o.scene, &o.request, &gen);
	if (r < 0) {
		pin_remove_key(&o.key); /* the kernel refuses if it is in use */
		drop_unused(n);
		return feature_blame(n, r);
	}
	if (n->log_fn)
		warn_of_others(n, &o, &gen.meta);
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
	cleanup_order struct order o = ORDER_INIT;
	char line[META_REASON_MAX];
	int r;

	if (!n)
		return -EINVAL;
	if (!reason || !reason[0])
		return refuse(n, -EINVAL, "reason: missing");
	/* First of all: it may be the handle's own error text. */
	(void)str_copy(line, sizeof(line), reason);
	str_one_line(line);
	r = order_read(n, target, policy, &o);
	if (r < 0)
		return r;
	r = order_take(n, &o);
	if (r < 0)
		return feature_blame(n, r);
	r = shaper_record(n, &o.key, &o.scene, &o.request, line);
	if (r < 0)
		pin_remove_key(&o.key);
	return finish(n, r);
}

static int not_attached(struct natra *n, const char *id)
{
	return refuse(n, -ENOENT, "'%s' is not attached", id);
}

static int read_pinned_subnets(struct natra *n, const struct pin_gen *gen,
			       struct subnets *ret_subnets)
{
	int r = pin_read_subnets(n, gen, ret_subnets);

	if (r == -ENOENT)
		return refuse(n, r, "the subnets of '%s' are gone",
			      gen->meta.id);
	return r;
}

/* Attaches again with what is on record, because a direction or the build is
 * new. */
static int reattach(struct natra *n, const struct pin_key *key,
		    const struct pin_gen *gen,
		    const struct natra_policy *policy)
{
	const struct meta *meta = &gen->meta;
	cleanup_subnets struct subnets subnets = {0};
	struct netns_id netns = meta_netns(&meta->pod);
	struct request request = {
		.id = meta->id,
		.network = meta->network,
		.label = meta->label,
		.policy = policy,
		.subnets = &subnets,
	};
	cleanup_pin_gen struct pin_gen attached = PIN_GEN_INIT;
	cleanup_close int fd = -1;
	struct scene scene;
	int r;

	r = read_pinned_subnets(n, gen, &subnets);
	if (r < 0)
		return r;
	r = netns_find(n, &netns, -1, &fd);
	if (r == -ENOENT)
		return refuse(n, -ENODEV, "the netns of '%s' is gone",
			      meta->pod.ifname);
	if (r < 0)
		return fail_errno(n, r, "find the netns of '%s'",
				  meta->pod.ifname);
	r = scene_look(n, fd, meta->pod.ifname, &scene);
	if (r < 0)
		return r;
	r = shaper_attach(n, key, &scene, &request, &attached);
	if (r < 0)
		drop_unused(n);
	return r;
}

/* mode, edt, ingress_mode, sketch_width: 0 keeps them; another value than before,
 * or other subnets, are -EINVAL. */
static int merge_fixed(struct natra *n, const struct pin_gen *gen,
		       struct natra_policy *p, const struct subnets *subnets)
{
	struct natra_policy policy = meta_get_policy(&gen->meta);
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
	r = read_pinned_subnets(n, gen, &pinned);
	if (r == 0 && !subnets_equal(&pinned, subnets))
		return refuse(n, -EINVAL, "subnets: fixed while attached");
	return r;
}

static int refuse_unshaped(struct natra *n, int r, const struct meta *meta)
{
	return refuse(n, r, "'%s' runs without its limits: %s", meta->id,
		      meta->reason);
}

static int refuse_gone(struct natra *n, const struct pin_gen *gen)
{
	int r = check_exists(n, gen);

	if (r == 0)
		return refuse(n, -ENODEV, "interface '%s' of '%s' is gone",
			      gen->meta.pod.ifname, gen->meta.id);
	return r < 0 ? r : 0;
}

int natra_configure(struct natra *n, const char *id,
		    const struct natra_policy *policy)
{
	cleanup_pin_key struct pin_key key = PIN_KEY_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets subnets = {0};
	struct natra_policy before, p;
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = read_policy(n, policy, &p, &subnets);
	if (r == 0)
		r = pin_lock(n, id, false, &key);
	if (r == 0)
		r = pin_find_gen(n, key.path, &gen);
	if (r == -ENOENT)
		return not_attached(n, id);
	if (r < 0)
		return r;
	if (gen.meta.unshaped)
		return refuse_unshaped(n, -EOPNOTSUPP, &gen.meta);
	before = meta_get_policy(&gen.meta);
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
	if (!limits_cover(&gen.meta, &p))
		r = reattach(n, &key, &gen, &p);
	else
		r = limits_set(n, &gen, &p);
	return finish(n, r);
}

int natra_upgrade(struct natra *n, const char *id)
{
	cleanup_pin_key struct pin_key key = PIN_KEY_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_policy policy;
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = pin_lock(n, id, false, &key);
	if (r == 0)
		r = pin_find_gen(n, key.path, &gen);
	if (r == -ENOENT)
		return not_attached(n, id);
	if (r == -ESTALE && gen.abi < NATRA_PIN_ABI)
		return refuse(
			n, r,
			"the limits of '%s' were pinned by ABI %u and cannot be read by this one, %d: attach it again",
			id, gen.abi, NATRA_PIN_ABI);
	if (r < 0)
		return r;
	if (gen.meta.unshaped)
		return refuse_unshaped(n, -EOPNOTSUPP, &gen.meta);
	r = refuse_gone(n, &gen);
	if (r < 0)
		return r;
	policy = meta_get_policy(&gen.meta);
	return finish(n, reattach(n, &key, &gen, &policy));
}

/* The id that a target means: its own, the one on the interface, the default. */
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
	return find_owner(n, &scene.pod_netns, scene.pod.ifindex, ret_id);
}

int natra_detach(struct natra *n, const struct natra_target *target)
{
	cleanup_pin_key struct pin_key key = PIN_KEY_INIT;
	char id[NATRA_ID_MAX + 1];
	struct natra_target t;
	cleanup_close int fd = -1;
	int r;

	if (!n)
		return -EINVAL;
	r = target_in(n, target, &t);
	if (r < 0)
		return r;
	/* With an id, the netns only helps to find the interface. */
	r = netns_open(n, &t, &fd);
	if (r == -ENOENT || (r == -EINVAL && t.netns)) {
		/* Gone, or the empty file that was its mount point. */
		if (!t.id || !t.id[0])
			return finish(n, 0);
	} else if (r < 0) {
		return r;
	}
	r = resolve_id(n, &t, fd, id);
	if (r == -ENOENT || r == -ENODEV)
		return finish(n, 0);
	if (r == 0)
		r = pin_lock(n, id, false, &key);
	if (r == 0)
		r = teardown_key(n, &key, NULL, fd);
	if (r == 0)
		pin_remove_key(&key);
	/* With nothing to detach too: the call before may have failed here. */
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
	r = pin_find(n, id, &gen);
	if (r == -ENOENT)
		return not_attached(n, id);
	if (r == 0)
		r = check_attached(n, &gen, -1);
	if (r == 0 && gen.meta.unshaped)
		return refuse_unshaped(n, -EBADE, &gen.meta);
	if (r == 0)
		r = check_limits(n, &gen);
	if (r < 0 || !policy)
		return finish(n, r);

	r = merge_fixed(n, &gen, &want, &subnets);
	if (r < 0)
		return r == -EINVAL ? -EBADE : r;
	have = meta_get_policy(&gen.meta);
	have = policy_effective(&have);
	want = policy_effective(&want);
	/* Without padding: eight 64-bit members, six of 32 bits, and four of
	 * the size of pointers. */
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
	r = pin_find(n, id, &gen);
	if (r == -ENOENT)
		return not_attached(n, id);
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
