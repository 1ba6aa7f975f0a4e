/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions on attachments: validate, lock, call the shaper. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "set_limits.h"
#include "shaper.h"
#include "structs.h"
#include "teardown.h"
#include "util/cleanup.h"
#include "util/str.h"

static int check_text(struct natra *n, const char *name, const char *value,
		      size_t max)
{
	if (value && strlen(value) > max)
		return natra_refuse(n, -EINVAL, "%s: longer than %zu bytes",
				    name, max);
	return 0;
}

static int read_target(struct natra *n, const struct natra_target *target,
		       struct natra_target *ret_target)
{
	struct natra_target t;
	int r;

	r = struct_in(n, "target", &t, sizeof(t), target);
	if (r == 0)
		r = check_text(n, "id", t.id, NATRA_ID_MAX);
	if (r == 0)
		r = check_text(n, "ifname", t.ifname, 15);
	if (r == 0)
		r = check_text(n, "network", t.network, NATRA_NAME_MAX);
	if (r == 0)
		r = check_text(n, "label", t.label, NATRA_NAME_MAX);
	if (r < 0)
		return r;
	if (t.netns && t.netns_fd > 0)
		return natra_refuse(n, -EINVAL,
				    "netns_fd: %d beside netns '%s'",
				    t.netns_fd, t.netns);
	if (t.netns_fd < 0)
		return natra_refuse(n, -EINVAL, "netns_fd: %d", t.netns_fd);
	*ret_target = t;
	return 0;
}

static int read_policy(struct natra *n, const struct natra_policy *policy,
		       struct natra_policy *ret_policy)
{
	struct natra_policy p;
	int r = struct_in(n, "policy", &p, sizeof(p), policy);

	if (r < 0)
		return r;
	r = policy_check(&p, n->error, sizeof(n->error));
	if (r < 0)
		return r;
	*ret_policy = p;
	return 0;
}

int natra_policy_check(struct natra *n, const struct natra_policy *policy)
{
	struct natra_policy p;

	if (!n)
		return -EINVAL;
	return read_policy(n, policy, &p);
}

/* The environment stands in for `auto` only. */
static int read_environment(struct natra *n, struct natra_policy *p)
{
	const char *mode = secure_getenv("NATRA_ATTACH_MODE");
	const char *edt = secure_getenv("NATRA_EDT_PACING");

	if (mode && p->mode == NATRA_MODE_AUTO &&
	    natra_parse_mode(mode, &p->mode) < 0)
		return natra_refuse(n, -EINVAL,
				    "NATRA_ATTACH_MODE: '%s' is not a mode",
				    mode);
	if (edt && p->edt == NATRA_EDT_AUTO &&
	    natra_parse_edt(edt, &p->edt) < 0)
		return natra_refuse(
			n, -EINVAL,
			"NATRA_EDT_PACING: '%s' is not auto, on or off", edt);
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
		natra_log(n, NATRA_LOG_WARN,
			  "%s: '%s' has natra programs that nobody here pinned",
			  id, scene->pod.ifname);
		return 0;
	}
	if (r == 0 && strcmp(owner, id) != 0)
		return natra_refuse(n, -EBUSY,
				    "interface '%s' is attached as '%s'",
				    scene->pod.ifname, owner);
	return r;
}

int natra_attach(struct natra *n, const struct natra_target *target,
		 const struct natra_policy *policy)
{
	cleanup_pin_key struct pin_key key = PIN_KEY_INIT;
	struct natra_target t;
	struct natra_policy p;
	cleanup_close int fd = -1;
	cleanup_close int lock_fd = -1;
	struct scene scene;
	char id[NATRA_ID_MAX + 1];
	struct request request = {.id = id, .policy = &p};
	int r;

	if (!n)
		return -EINVAL;
	r = read_target(n, target, &t);
	if (r == 0)
		r = read_policy(n, policy, &p);
	if (r == 0)
		r = read_environment(n, &p);
	if (r < 0)
		return r;
	if (!t.ifname || !t.ifname[0])
		return natra_refuse(n, -EINVAL, "ifname: missing");
	if (!p.ingress_rate_bits_per_sec && !p.egress_rate_bits_per_sec)
		return natra_refuse(
			n, -EINVAL,
			"ingress_rate_bits_per_sec, egress_rate_bits_per_sec: at least one is needed");
	r = kernel_is_supported(n);
	if (r == 0)
		r = netns_open(n, &t, &fd);
	/* So that of two ids for one interface the second sees the first. */
	if (r == 0)
		r = netns_lock(n, fd, &lock_fd);
	if (r == 0)
		r = scene_look(n, fd, t.ifname, &scene);
	if (r < 0)
		return r;

	if (t.id && t.id[0])
		(void)str_copy(id, sizeof(id), t.id);
	else
		(void)snprintf(id, sizeof(id), "%" PRIu64 "-%s",
			       scene.pod_netns.inode, t.ifname);
	request.network = t.network;
	request.label = t.label;
	r = refuse_foreign(n, &scene, id);
	if (r == 0)
		r = pin_lock(n, id, true, &key);
	if (r < 0)
		return r;
	r = shaper_attach(n, &key, &scene, &request);
	if (r < 0)
		pin_remove_key(&key); /* the kernel refuses if it is in use */
	return r;
}

static int not_attached(struct natra *n, const char *id)
{
	return natra_refuse(n, -ENOENT, "'%s' is not attached", id);
}

/* Attach again with what is on record, because a direction is new. */
static int reattach(struct natra *n, const struct pin_key *key,
		    const struct meta *meta, const struct natra_policy *policy)
{
	struct netns_id netns = meta_netns(&meta->pod);
	struct request request = {
		.id = meta->id,
		.network = meta->network,
		.label = meta->label,
		.policy = policy,
	};
	cleanup_close int fd = -1;
	struct scene scene;
	int r;

	r = netns_find(&netns, -1, &fd);
	if (r == -ENOENT)
		return natra_refuse(n, -ENODEV, "the netns of '%s' is gone",
				    meta->pod.ifname);
	if (r < 0)
		return natra_fail(n, r, "find the netns of '%s'",
				  meta->pod.ifname);
	r = scene_look(n, fd, meta->pod.ifname, &scene);
	return r < 0 ? r : shaper_attach(n, key, &scene, &request);
}

/* mode, edt, ingress_mode and sketch_width are fixed: 0 keeps them. */
static int merge_fixed(struct natra *n, const struct natra_policy *before,
		       struct natra_policy *p)
{
	if (!p->mode)
		p->mode = before->mode;
	if (!p->edt)
		p->edt = before->edt;
	if (!p->ingress_mode)
		p->ingress_mode = before->ingress_mode;
	if (!p->sketch_width)
		p->sketch_width = before->sketch_width;
	if (!policy_same_shape(before, p))
		return natra_refuse(
			n, -EINVAL,
			"mode, edt, ingress_mode, sketch_width: fixed while attached");
	return 0;
}

int natra_configure(struct natra *n, const char *id,
		    const struct natra_policy *policy)
{
	cleanup_pin_key struct pin_key key = PIN_KEY_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_policy before, p;
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = read_policy(n, policy, &p);
	if (r == 0)
		r = pin_lock(n, id, false, &key);
	if (r == 0)
		r = pin_find_gen(n, key.path, &gen);
	if (r == -ENOENT)
		return not_attached(n, id);
	if (r < 0)
		return r;
	before = meta_get_policy(&gen.meta);
	r = merge_fixed(n, &before, &p);
	if (r < 0)
		return r;
	r = check_is_gone(n, &gen);
	if (r < 0)
		return r;
	if (r == 1)
		return natra_refuse(n, -ENODEV,
				    "interface '%s' of '%s' is gone",
				    gen.meta.pod.ifname, id);
	if (!limits_cover(&gen.meta, &p))
		return reattach(n, &key, &gen.meta, &p);
	return limits_set(n, &gen, &p);
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
		return natra_refuse(n, -EINVAL, "id, ifname: one is needed");
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
	r = read_target(n, target, &t);
	if (r < 0)
		return r;
	/* With an id, the netns only helps to find the interface. */
	r = netns_open(n, &t, &fd);
	if (r == -ENOENT || (r == -EINVAL && t.netns)) {
		/* Gone, or the empty file that was its mount point. */
		if (!t.id || !t.id[0])
			return 0;
	} else if (r < 0) {
		return r;
	}
	r = resolve_id(n, &t, fd, id);
	if (r == -ENOENT || r == -ENODEV)
		return 0;
	if (r == 0)
		r = pin_lock(n, id, false, &key);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = teardown_key(n, &key, NULL, fd);
	if (r == 0)
		pin_remove_key(&key);
	return r;
}

int natra_check(struct natra *n, const char *id,
		const struct natra_policy *policy)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_policy have, want;
	int r;

	r = require_id(n, id);
	if (r < 0)
		return r;
	if (policy) {
		r = read_policy(n, policy, &want);
		if (r < 0)
			return r;
	}
	r = pin_find(n, id, &gen);
	if (r == -ENOENT)
		return not_attached(n, id);
	if (r == 0)
		r = check_attached(n, &gen, -1);
	if (r == 0)
		r = check_limits(n, &gen);
	if (r < 0 || !policy)
		return r;

	have = meta_get_policy(&gen.meta);
	if (merge_fixed(n, &have, &want) < 0)
		return -EBADE;
	have = policy_effective(&have);
	want = policy_effective(&want);
	/* Without padding: eight 64-bit members, then six of 32 bits. */
	if (memcmp(&have, &want, sizeof(have)) != 0)
		return natra_refuse(n, -EBADE,
				    "'%s' was set to other limits than these",
				    id);
	return 0;
}

int natra_neighbours(struct natra *n, const char *id,
		     int (*cb)(void *arg, const struct natra_hook_entry *entry),
		     void *arg)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r;

	r = require_id(n, id);
	if (r == 0 && !cb)
		r = natra_refuse(n, -EINVAL, "cb: missing");
	if (r < 0)
		return r;
	r = pin_find(n, id, &gen);
	if (r == -ENOENT)
		return not_attached(n, id);
	return r < 0 ? r : check_neighbours(n, &gen, cb, arg);
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
		return natra_refuse(n, -EINVAL, "ret_id: missing");
	r = read_target(n, target, &t);
	if (r == 0)
		r = netns_open(n, &t, &fd);
	if (r < 0)
		return r;
	t.id = NULL;
	r = resolve_id(n, &t, fd, id);
	if (r == -ENOENT)
		return natra_refuse(n, r, "nothing is attached to '%s'",
				    t.ifname);
	if (r == 0)
		(void)str_copy(ret_id, NATRA_ID_MAX + 1, id);
	return r;
}
