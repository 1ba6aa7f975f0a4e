/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/teardown.h"

#include <bpf/bpf.h>
#include <errno.h>

#include "attach/gso.h"
#include "kernel/hook.h"
#include "kernel/netns_find.h"
#include "kernel/qdisc_fq.h"
#include "state/engine.h"
#include "util/cleanup.h"

struct site {
	struct natra *n;
	const struct meta *meta;
	const struct meta_link *link;
	bool on_host;
	bool remove_fq;
	uint32_t gso_segs; /* those that shall be */
};

static bool changes_gso(const struct site *site)
{
	return !site->on_host && site->meta->gso_segs != site->gso_segs;
}

/* In the namespace of the site. */
static int clean_site(void *arg)
{
	const struct site *site = arg;
	cleanup_netlink struct netlink nl = {0};
	int r;

	r = netlink_open(site->n, &nl);
	for (int i = 0; i < HALF_MAX && r == 0; i++) {
		const struct meta_half *half = &site->meta->half[i];
		struct hook hook = {
			.ifindex = site->link->ifindex,
			.ingress = half->hook_ingress,
		};

		if (half->hook == META_HOOK_CLSACT && half->prog_id &&
		    (half->on_host != 0) == site->on_host)
			r = hook_clsact_detach(site->n, &nl, &hook,
					       half->prog_id);
	}
	if (r == 0 && site->remove_fq)
		r = qdisc_fq_remove(site->n, &nl, site->link->ifindex);
	if (r == 0 && changes_gso(site))
		gso_change(site->n, &nl, site->link->ifindex,
			   site->meta->gso_segs, site->gso_segs);
	return r;
}

static bool same_link(const struct meta_link *a, const struct meta_link *b)
{
	return a->ifindex == b->ifindex && a->netns_cookie == b->netns_cookie;
}

static int teardown_site(struct natra *n, const struct meta *meta,
			 const struct meta *keep, bool on_host, int hint_fd)
{
	const struct meta_link *link = on_host ? &meta->host : &meta->pod;
	const struct meta_link *of_keep =
		!keep ? NULL : (on_host ? &keep->host : &keep->pod);
	bool kept = of_keep && same_link(link, of_keep);
	struct netns_id id = meta_netns(link);
	struct site site = {
		.n = n,
		.meta = meta,
		.link = link,
		.on_host = on_host,
		.remove_fq = link->fq && !(kept && of_keep->fq),
		.gso_segs = kept ? keep->gso_segs : 0,
	};
	cleanup_close int fd = -1;
	int r;

	if (!link->ifindex || (!site.remove_fq && !changes_gso(&site) &&
			       !meta_has_hook(meta, on_host, META_HOOK_CLSACT)))
		return 0;
	r = netns_find(n, &id, on_host ? -1 : hint_fd, &fd);
	if (r == -ENOENT) {
		log_line(n, NATRA_LOG_DEBUG, "netns %llu is gone",
			 (unsigned long long)id.inode);
		return 0;
	}
	if (r < 0)
		return fail_errno(n, r, "find netns %llu",
				  (unsigned long long)id.inode);
	return netns_run(n, fd, clean_site, &site);
}

static int detach_link(struct natra *n, const struct pin_gen *gen,
		       enum half half)
{
	cleanup_close int fd = -1;
	int r = pin_open_link(n, gen, half, &fd);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	/* At once: what unpinning alone frees, the kernel frees later. */
	r = bpf_link_detach(fd);
	if (r < 0 && r != -ENOLINK && r != -ENODEV && r != -ENOENT)
		return fail_errno(n, r, "detach the TCX link of ifindex %u",
				  gen->meta.pod.ifindex);
	return 0;
}

int teardown_gen(struct natra *n, const struct pin_gen *gen,
		 const struct meta *keep, int hint_fd)
{
	int r = 0;

	if (gen->abi && gen->abi <= NATRA_PIN_ABI) {
		for (int i = 0; i < HALF_MAX && r == 0; i++)
			r = detach_link(n, gen, (enum half)i);
		if (r == 0)
			r = teardown_site(n, &gen->meta, keep, false, hint_fd);
		if (r == 0)
			r = teardown_site(n, &gen->meta, keep, true, hint_fd);
		for (int i = 0; i < HALF_MAX && r == 0; i++)
			r = engine_leave(n, &gen->meta.slot[i]);
		if (r < 0)
			return r;
	} else if (gen->abi) {
		return refuse(n, -ESTALE,
			      "'%s' was pinned by ABI %u, this is %d",
			      gen->path, gen->abi, NATRA_PIN_ABI);
	}
	return pin_remove_gen(n, gen);
}

struct others {
	struct natra *n;
	const struct pin_gen *except;
	int hint_fd;
};

static int teardown_other(void *arg, struct pin_gen *gen)
{
	const struct others *others = arg;

	if (others->except && gen->number == others->except->number)
		return 0;
	return teardown_gen(others->n, gen,
			    others->except ? &others->except->meta : NULL,
			    others->hint_fd);
}

int teardown_key(struct natra *n, const struct pin_key *key,
		 const struct pin_gen *except, int hint_fd)
{
	struct others others = {n, except, hint_fd};

	return pin_foreach_gen(n, key->path, teardown_other, &others);
}
