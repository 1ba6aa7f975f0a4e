/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/shaper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/check.h"
#include "attach/gso.h"
#include "attach/limits.h"
#include "attach/teardown.h"
#include "kernel/feature.h"
#include "kernel/hook.h"
#include "kernel/qdisc_fq.h"
#include "state/engine.h"
#include "state/subnets_map.h"
#include "util/cleanup.h"
#include "util/str.h"

/* What one attempt to attach works on. */
struct attempt {
	struct natra *n;
	const struct scene *scene;
	const struct natra_policy *policy;
	const struct subnets *subnets;
	const char *why;       /* this mode */
	uint32_t gso_segs;     /* those of the attachment before it */
	struct link_info host; /* ifindex 0: not used */
	struct pin_gen gen;
	struct stub stub[HALF_MAX];
};

static bool is_hostside(enum natra_mode mode)
{
	return mode == NATRA_MODE_TCX_HOSTSIDE ||
	       mode == NATRA_MODE_CLSACT_HOSTSIDE;
}

static bool is_tcx(enum natra_mode mode)
{
	return mode == NATRA_MODE_TCX_PODSIDE ||
	       mode == NATRA_MODE_TCX_HOSTSIDE;
}

static bool paces_ingress(const struct natra_policy *policy)
{
	return policy->ingress_mode == NATRA_INGRESS_MODE_PACE &&
	       policy->ingress_rate_bits_per_sec;
}

/* Decides where a half's program goes, and notes whether packets begin with an
 * Ethernet header there. */
static void place_half(struct attempt *a, enum half half)
{
	struct meta *meta = &a->gen.meta;
	bool hostside = is_hostside((enum natra_mode)meta->mode);
	struct meta_half *h = &meta->half[half];

	h->hook = is_tcx((enum natra_mode)meta->mode) ? META_HOOK_TCX
						      : META_HOOK_CLSACT;
	h->on_host = hostside || half == HALF_PACE;
	/* What goes into the pod leaves the host-side veth. */
	h->hook_ingress = (half == HALF_EGRESS) == (h->on_host != 0);
	if (h->on_host ? a->host.has_l2 : a->scene->pod.has_l2)
		meta->l2_halves |= 1U << half;
}

static bool half_wanted(const struct attempt *a, enum half half)
{
	const struct natra_policy *p = a->policy;
	bool pace = paces_ingress(p);

	switch (half) {
	case HALF_EGRESS:
		return p->egress_rate_bits_per_sec != 0;
	case HALF_PACE:
		return pace;
	case HALF_INGRESS:
		/* On the host side the pacer's hook is all there is. */
		return p->ingress_rate_bits_per_sec &&
		       !(pace &&
			 is_hostside((enum natra_mode)a->gen.meta.mode));
	default:
		return false;
	}
}

static int load_half(struct attempt *a, enum half half)
{
	struct meta *meta = &a->gen.meta;
	struct program_options options;
	int r;

	place_half(a, half);
	options = engine_options(meta, half, a->subnets);
	meta->limits[half] =
		policy_limits(a->policy, half, meta_is_paced(meta, half));
	r = engine_enter(a->n, &a->gen, half, &options, &meta->limits[half],
			 &a->stub[half]);
	meta->half[half].prog_id = a->stub[half].prog_id;
	return r;
}

static int load_halves(struct attempt *a)
{
	for (int i = 0; i < HALF_MAX; i++) {
		int r = half_wanted(a, (enum half)i)
				? load_half(a, (enum half)i)
				: 0;

		if (r < 0)
			return r;
	}
	/* Before anything is attached: who finds it can tell our programs. */
	return pin_store_meta(a->n, &a->gen);
}

static int attach_half(struct attempt *a, struct netlink *nl, enum half half)
{
	const struct meta *meta = &a->gen.meta;
	const struct meta_half *h = &meta->half[half];
	cleanup_close int link_fd = -1;
	struct hook hook = {
		.ifindex = h->on_host ? meta->host.ifindex : meta->pod.ifindex,
		.ingress = h->hook_ingress,
	};
	int r;

	if (h->hook == META_HOOK_CLSACT)
		return hook_clsact_attach(a->n, nl, &hook,
					  a->stub[half].prog_fd,
					  a->stub[half].prog_id);
	r = hook_tcx_attach(a->n, &hook, a->stub[half].prog_fd, &link_fd);
	if (r < 0)
		return r;
	return pin_link(a->n, &a->gen, half, link_fd);
}

static int attach_site(struct attempt *a, struct netlink *nl, bool on_host)
{
	int r = 0;

	for (int i = 0; i < HALF_MAX && r == 0; i++) {
		const struct meta_half *h = &a->gen.meta.half[i];

		if (h->hook && (h->on_host != 0) == on_host)
			r = attach_half(a, nl, (enum half)i);
	}
	return r;
}

/* Returns -EOPNOTSUPP if this kernel cannot run a program that paces. This is
 * asked before fq is touched. */
static int can_pace(const struct attempt *a, enum half half)
{
	struct program_options options =
		engine_options(&a->gen.meta, half, a->subnets);

	options.kind = PROGRAM_EDT;
	options.has_l2 =
		half == HALF_PACE ? a->host.has_l2 : a->scene->pod.has_l2;
	if (engine_is_loaded(a->n, &options))
		return 0;
	return feature_require(a->n, FEATURE_SET_TSTAMP);
}

/* Records fq before it is there, so that it cannot be lost. */
static int add_fq(struct attempt *a, struct netlink *nl, struct meta_link *link)
{
	int r;

	link->fq = 1;
	r = pin_store_meta(a->n, &a->gen);
	if (r == 0)
		r = qdisc_fq_add(a->n, nl, link->ifindex);
	/* After another error it may be there: the answer was lost. */
	if (r == -EOPNOTSUPP || r == -EBUSY)
		link->fq = 0;
	return r;
}

/* Decide on departure times for egress, and put fq there; in the pod's
 * namespace. */
static int prepare_edt(struct attempt *a, struct netlink *nl, char *reason,
		       size_t size)
{
	struct meta *meta = &a->gen.meta;
	int r;

	if (!a->policy->egress_rate_bits_per_sec ||
	    a->policy->edt == NATRA_EDT_OFF) {
		(void)str_copy(reason, size, "edt is off");
		if (a->policy->edt != NATRA_EDT_OFF)
			(void)str_copy(reason, size, "no egress limit");
		return 0;
	}
	if (is_hostside((enum natra_mode)meta->mode)) {
		(void)str_copy(reason, size, "no edt on the host side");
		if (a->policy->edt == NATRA_EDT_ON)
			return refuse(a->n, -EOPNOTSUPP,
				      "edt: on needs a podside mode");
		return 0;
	}
	r = can_pace(a, HALF_EGRESS);
	if (r == 0)
		r = add_fq(a, nl, &meta->pod);
	if (r == 0) {
		meta->edt = 1;
		meta->gso_segs = policy_gso_segs(a->policy);
		(void)str_copy(reason, size, "edt with fq");
		return 0;
	}
	if (a->policy->edt == NATRA_EDT_AUTO &&
	    (r == -EOPNOTSUPP || r == -EBUSY)) {
		(void)snprintf(reason, size, "no edt: %s", last_error(a->n));
		return 0;
	}
	return r;
}

static int prepare_pace(struct attempt *a)
{
	cleanup_netlink struct netlink nl = {0};
	int r;

	if (!paces_ingress(a->policy))
		return 0;
	r = can_pace(a, HALF_PACE);
	if (r == 0)
		r = netlink_open(a->n, &nl);
	if (r == 0)
		r = add_fq(a, &nl, &a->gen.meta.host);
	if (r == -EOPNOTSUPP || r == -EBUSY)
		return refuse(a->n, r, "ingress_mode: pace on '%s': %s",
			      a->host.ifname, last_error(a->n));
	return r;
}

static int find_host(struct attempt *a, enum natra_mode mode)
{
	cleanup_netlink struct netlink nl = {0};
	int r;

	if (!is_hostside(mode) && !paces_ingress(a->policy))
		return 0;
	r = netlink_open(a->n, &nl);
	if (r < 0)
		return r;
	return link_host_peer(a->n, &nl, &a->scene->pod, a->scene->pod_fd,
			      &a->host);
}

static void set_link(struct meta_link *link, const struct link_info *info,
		     const struct netns_id *netns)
{
	link->ifindex = info->ifindex;
	link->netns_inode = netns->inode;
	link->netns_cookie = netns->cookie;
	(void)str_copy(link->ifname, sizeof(link->ifname), info->ifname);
}

/* In the pod's namespace, and all that can be done there in one visit. */
static int build_pod_site(void *arg)
{
	struct attempt *a = arg;
	char edt_reason[META_REASON_MAX / 2];
	struct meta *meta = &a->gen.meta;
	cleanup_netlink struct netlink nl = {0};
	int r;

	r = netlink_open(a->n, &nl);
	if (r == 0)
		r = prepare_edt(a, &nl, edt_reason, sizeof(edt_reason));
	if (r < 0)
		return r;
	(void)snprintf(meta->reason, sizeof(meta->reason), "%.120s; %s", a->why,
		       edt_reason);
	r = load_halves(a);
	if (r == 0)
		r = attach_site(a, &nl, false);
	if (r == 0 && (meta->gso_segs || a->gso_segs))
		gso_change(a->n, &nl, meta->pod.ifindex, a->gso_segs,
			   meta->gso_segs);
	return r;
}

static int attach_host_site(struct attempt *a)
{
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(a->n, &nl);

	return r < 0 ? r : attach_site(a, &nl, true);
}

/* Everything that can fail after the generation exists. */
static int build(struct attempt *a)
{
	struct meta *meta = &a->gen.meta;
	int r;

	r = prepare_pace(a);
	if (r == 0)
		r = netns_run(a->n, a->scene->pod_fd, build_pod_site, a);
	if (r == 0 && meta->host.ifindex)
		r = attach_host_site(a);
	if (r < 0)
		return r;
	meta->complete = 1;
	return pin_store_meta(a->n, &a->gen);
}

/* The error to tell is that of before. */
static void undo(struct natra *n, const struct pin_gen *gen,
		 const struct meta *keep, int pod_fd)
{
	char error[HANDLE_ERROR_MAX];

	(void)str_copy(error, sizeof(error), last_error(n));
	if (teardown_gen(n, gen, keep, pod_fd) < 0)
		log_line(n, NATRA_LOG_ERROR, "undo: %s", last_error(n));
	(void)str_copy(n->error, sizeof(n->error), error);
}

static struct meta new_meta(const struct scene *scene,
			    const struct request *request)
{
	struct meta meta = {
		.magic = NATRA_PIN_MAGIC,
		.abi = NATRA_PIN_ABI,
		.size = sizeof(meta),
	};

	set_link(&meta.pod, &scene->pod, &scene->pod_netns);
	meta_set_policy(&meta, request->policy);
	(void)str_copy(meta.id, sizeof(meta.id), request->id);
	(void)str_copy(meta.network, sizeof(meta.network), request->network);
	(void)str_copy(meta.label, sizeof(meta.label), request->label);
	return meta;
}

/* One mode, or nothing at all; the other generations are not touched. */
static int try_mode(struct natra *n, const struct pin_key *key,
		    const struct scene *scene, const struct request *request,
		    enum natra_mode mode, const char *why,
		    const struct pin_gen *before, struct pin_gen *ret_gen)
{
	struct meta meta = new_meta(scene, request);
	struct attempt a = {
		.n = n,
		.scene = scene,
		.policy = request->policy,
		.why = why,
		.subnets = request->subnets,
		.gso_segs = before ? before->meta.gso_segs : 0,
		.gen = PIN_GEN_INIT,
		.stub = {STUB_INIT, STUB_INIT, STUB_INIT},
	};
	int r;

	if (is_tcx(mode)) {
		r = hook_tcx_supported(n);
		if (r == 0)
			return refuse(n, -EOPNOTSUPP,
				      "this kernel has no TCX (Linux 6.6)");
		if (r < 0)
			return r;
	}
	r = find_host(&a, mode);
	if (r < 0)
		return r;
	meta.mode = mode;
	if (a.host.ifindex)
		set_link(&meta.host, &a.host, &scene->host_netns);
	r = pin_new_gen(n, key, before ? before->number : 0, &meta, &a.gen);
	if (r < 0)
		return r;
	r = build(&a);
	for (int i = 0; i < HALF_MAX; i++)
		stub_close(&a.stub[i]);
	if (r == 0) {
		*ret_gen = a.gen;
		return 0;
	}
	undo(n, &a.gen, before ? &before->meta : NULL, scene->pod_fd);
	pin_close_gen(&a.gen);
	return r;
}

static int try_modes(struct natra *n, const struct pin_key *key,
		     const struct scene *scene, const struct request *request,
		     const struct pin_gen *before, struct pin_gen *ret_gen)
{
	static const enum natra_mode with_edt[] = {
		NATRA_MODE_TCX_PODSIDE,
		NATRA_MODE_CLSACT_PODSIDE,
		NATRA_MODE_TCX_HOSTSIDE,
		NATRA_MODE_CLSACT_HOSTSIDE,
	};
	static const enum natra_mode without_edt[] = {
		NATRA_MODE_TCX_PODSIDE,
		NATRA_MODE_TCX_HOSTSIDE,
		NATRA_MODE_CLSACT_PODSIDE,
		NATRA_MODE_CLSACT_HOSTSIDE,
	};
	const enum natra_mode *order =
		request->policy->edt == NATRA_EDT_OFF ? without_edt : with_edt;
	char why[META_REASON_MAX / 2 - 2] = "first choice of auto";
	char error[HANDLE_ERROR_MAX];
	bool told = false;
	int r;

	if (request->policy->mode != NATRA_MODE_AUTO)
		return try_mode(n, key, scene, request, request->policy->mode,
				"asked for", before, ret_gen);
	for (int i = 0; i < NATRA_MODE_MAX - 1; i++) {
		r = try_mode(n, key, scene, request, order[i], why, before,
			     ret_gen);
		if (r != -EOPNOTSUPP)
			return r;
		if (!told)
			(void)str_copy(error, sizeof(error), last_error(n));
		(void)snprintf(why, sizeof(why), "not %s: %s",
			       natra_mode_name(order[i]), last_error(n));
		log_line(n, NATRA_LOG_INFO, "%s", why);
		told = told || !is_tcx(order[i]) || hook_tcx_supported(n) != 0;
	}
	/* The error of the mode that would have been best tells more than that
	 * of the last one; but that there is no TCX does not tell why clsact is
	 * impossible. */
	(void)str_copy(n->error, sizeof(n->error), error);
	return r;
}

/* An attachment that already is what was asked for, but for the numbers. */
static bool same_interface(const struct meta *meta, const struct scene *scene)
{
	return meta->pod.ifindex == scene->pod.ifindex &&
	       meta->pod.netns_cookie == scene->pod_netns.cookie;
}

static bool can_keep(struct natra *n, const struct pin_gen *gen,
		     const struct scene *scene, const struct request *request)
{
	struct natra_policy before = meta_get_policy(&gen->meta);
	cleanup_subnets struct subnets subnets = {0};

	return !gen->meta.unshaped && same_interface(&gen->meta, scene) &&
	       pin_read_subnets(n, gen, &subnets) == 0 &&
	       subnets_equal(&subnets, request->subnets) &&
	       policy_same_shape(&before, request->policy) &&
	       limits_cover(&gen->meta, request->policy) &&
	       engine_serves(&gen->meta, request->subnets) &&
	       check_attached(n, gen, scene->pod_fd) == 0;
}

static int keep(struct natra *n, struct pin_gen *gen,
		const struct request *request)
{
	(void)str_copy(gen->meta.network, sizeof(gen->meta.network),
		       request->network);
	(void)str_copy(gen->meta.label, sizeof(gen->meta.label),
		       request->label);
	for (int i = 0; i < HALF_MAX; i++) {
		struct program_options options = engine_options(
			&gen->meta, (enum half)i, request->subnets);
		int r = gen->meta.half[i].hook
				? engine_renew(n, &gen->meta.slot[i], &options)
				: 0;

		if (r < 0)
			return r;
	}
	return limits_set(n, gen, request->policy);
}

int shaper_attach(struct natra *n, const struct pin_key *key,
		  const struct scene *scene, const struct request *request,
		  struct pin_gen *ret_gen)
{
	cleanup_pin_gen struct pin_gen before = PIN_GEN_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	bool exists, older;
	int r;

	r = link_check_type(n, &scene->pod);
	if (r < 0)
		return r;
	r = key->is_new ? -ENOENT : pin_find_gen(n, key->path, &before);
	/* What an older natra pinned is replaced like what this one did. */
	older = r == -ESTALE && before.abi < NATRA_PIN_ABI;
	if (r < 0 && r != -ENOENT && !older)
		return r;
	exists = r == 0 || older;
	/* What killed processes left; with nothing complete, all of it. */
	r = key->is_new ? 0
			: teardown_key(n, key, exists ? &before : NULL,
				       scene->pod_fd);
	if (r < 0)
		return r;
	if (exists && !older && can_keep(n, &before, scene, request)) {
		r = keep(n, &before, request);
		if (r == 0)
			*ret_gen = TAKE_GEN(before);
		return r;
	}

	r = try_modes(n, key, scene, request, exists ? &before : NULL, &gen);
	if (r < 0)
		return r;
	log_line(n, NATRA_LOG_INFO, "%s: %s (%s)", request->id,
		 natra_mode_name((enum natra_mode)gen.meta.mode),
		 gen.meta.reason);
	/* For a moment both judged each packet: a gap would be worse. */
	r = key->is_new ? 0 : teardown_key(n, key, &gen, scene->pod_fd);
	if (r < 0)
		log_line(n, NATRA_LOG_ERROR, "%s: the replaced state stays: %s",
			 request->id, last_error(n));
	*ret_gen = TAKE_GEN(gen);
	return 0;
}

static int write_record(struct natra *n, struct pin_gen *gen,
			const struct subnets *subnets)
{
	cleanup_close int fd = -1;
	int r = 0;

	if (subnets->kind) {
		r = subnets_map_make(n, subnets, &fd);
		if (r == 0)
			r = pin_subnets(n, gen, fd);
	}
	if (r < 0)
		return r;
	gen->meta.complete = 1;
	return pin_store_meta(n, gen);
}

int shaper_record(struct natra *n, const struct pin_key *key,
		  const struct scene *scene, const struct request *request,
		  const char *reason)
{
	cleanup_pin_gen struct pin_gen before = PIN_GEN_INIT;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct meta meta = new_meta(scene, request);
	bool exists;
	int r;

	r = pin_find_gen(n, key->path, &before);
	if (r < 0 && r != -ENOENT)
		return r;
	exists = r == 0;
	if (exists && !before.meta.unshaped &&
	    same_interface(&before.meta, scene))
		return 0;
	r = teardown_key(n, key, exists ? &before : NULL, scene->pod_fd);
	if (r < 0)
		return r;
	meta.unshaped = 1;
	(void)str_copy(meta.reason, sizeof(meta.reason), reason);
	r = pin_new_gen(n, key, exists ? before.number : 0, &meta, &gen);
	if (r < 0)
		return r;
	r = write_record(n, &gen, request->subnets);
	if (r < 0) {
		undo(n, &gen, NULL, scene->pod_fd);
		return r;
	}
	return teardown_key(n, key, &gen, scene->pod_fd);
}
