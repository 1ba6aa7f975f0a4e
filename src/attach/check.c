/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/check.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "kernel/hook.h"
#include "kernel/link.h"
#include "kernel/qdisc_fq.h"
#include "state/engine.h"
#include "util/cleanup.h"
#include "util/str.h"

struct site {
	struct natra *n;
	const struct pin_gen *gen;
	const struct meta_link *link;
	bool on_host;
	struct entries *entries;
};

/* Asks the kernel about the half's TCX link. Returns -ENOENT without an error
 * text if the link is not pinned. */
static int ask_link(struct natra *n, const struct pin_gen *gen, enum half half,
		    struct bpf_link_info *ret_info)
{
	uint32_t len = sizeof(*ret_info);
	cleanup_close int fd = -1;
	int r = pin_open_link(n, gen, half, &fd);

	if (r < 0)
		return r;
	r = bpf_obj_get_info_by_fd(fd, ret_info, &len);
	return r < 0 ? fail_errno(n, r, "ask for the %s link", half_name(half))
		     : 0;
}

/* 1: it is on no interface any more. */
static int check_link(struct natra *n, const struct pin_gen *gen,
		      enum half half)
{
	const struct meta_half *h = &gen->meta.half[half];
	struct bpf_link_info info = {0};
	int r = ask_link(n, gen, half, &info);

	if (r == -ENOENT)
		return refuse(n, -EBADE, "the %s link is not pinned",
			      half_name(half));
	if (r < 0)
		return r;
	if (info.tcx.ifindex == 0)
		return 1;
	if (info.prog_id != h->prog_id)
		return refuse(n, -EBADE, "the %s link runs program %u, not %u",
			      half_name(half), info.prog_id, h->prog_id);
	return 0;
}

static int find_interface(const struct site *site, struct netlink *nl)
{
	struct link_info info;
	int r = netlink_open(site->n, nl);

	if (r < 0)
		return r;
	r = link_by_index(nl, site->link->ifindex, &info);
	if (r == -ENODEV)
		return refuse(site->n, r, "interface '%s' is gone",
			      site->link->ifname);
	if (r < 0)
		return fail_errno(site->n, r, "look up interface '%s'",
				  site->link->ifname);
	return 0;
}

/* In the namespace of the site. */
static int check_interface(void *arg)
{
	cleanup_netlink struct netlink nl = {0};

	return find_interface(arg, &nl);
}

/* In the namespace of the site. */
static int check_site(void *arg)
{
	const struct site *site = arg;
	const struct meta *meta = &site->gen->meta;
	cleanup_netlink struct netlink nl = {0};
	int r = find_interface(site, &nl);

	if (r < 0)
		return r;
	for (int i = 0; i < HALF_MAX; i++) {
		const struct meta_half *h = &meta->half[i];
		struct hook hook = {site->link->ifindex, h->hook_ingress};

		if (h->hook != META_HOOK_CLSACT ||
		    (h->on_host != 0) != site->on_host)
			continue;
		r = hook_clsact_has(site->n, &nl, &hook, h->prog_id);
		if (r < 0)
			return r;
		if (r == 0)
			return refuse(
				site->n, -EBADE,
				"program %u is not on the clsact %s of '%s'",
				h->prog_id, hook.ingress ? "ingress" : "egress",
				site->link->ifname);
	}
	if (!site->link->fq)
		return 0;
	r = qdisc_fq_present(site->n, &nl, site->link->ifindex);
	if (r == 0)
		return refuse(site->n, -EBADE,
			      "fq is not the root qdisc of '%s'",
			      site->link->ifname);
	return r < 0 ? r : 0;
}

/* Runs fn in the namespace of a site; -ENODEV if that is gone. */
static int run_in_site(struct natra *n, const struct meta_link *link,
		       int hint_fd, int (*fn)(void *arg), struct site *site)
{
	struct netns_id id = meta_netns(link);
	cleanup_close int fd = -1;
	int r = netns_find(n, &id, hint_fd, &fd);

	if (r == -ENOENT)
		return refuse(n, -ENODEV, "the netns of '%s' is gone",
			      link->ifname);
	if (r < 0)
		return fail_errno(n, r, "find the netns of '%s'", link->ifname);
	return netns_run(n, fd, fn, site);
}

/* A link without an interface: that is gone, or somebody detached the link. */
static int check_unlinked(struct natra *n, const struct pin_gen *gen,
			  enum half half, int hint_fd)
{
	bool on_host = gen->meta.half[half].on_host != 0;
	struct site site = {
		.n = n,
		.gen = gen,
		.link = on_host ? &gen->meta.host : &gen->meta.pod,
		.on_host = on_host,
	};
	int r = run_in_site(n, site.link, on_host ? -1 : hint_fd,
			    check_interface, &site);

	if (r < 0)
		return r;
	return refuse(n, -EBADE, "the %s program was detached from '%s'",
		      half_name(half), site.link->ifname);
}

/* The stub alone passes everything. */
static int check_engine(struct natra *n, const struct pin_gen *gen,
			enum half half)
{
	cleanup_slot struct slot slot = SLOT_INIT;
	int r = engine_open_slot(n, &gen->meta.slot[half], &slot);

	if (r == -ENOENT)
		return refuse(n, -EBADE, "the program of %s is gone from bpffs",
			      half_name(half));
	return r;
}

int check_attached(struct natra *n, const struct pin_gen *gen, int hint_fd)
{
	int r = 0;

	for (int i = 0; i < HALF_MAX && r == 0; i++) {
		if (gen->meta.half[i].hook != META_HOOK_TCX)
			continue;
		r = check_link(n, gen, (enum half)i);
		if (r == 1)
			r = check_unlinked(n, gen, (enum half)i, hint_fd);
	}
	for (int on_host = 0; on_host < 2 && r == 0; on_host++) {
		struct site site = {
			.n = n,
			.gen = gen,
			.link = on_host ? &gen->meta.host : &gen->meta.pod,
			.on_host = on_host,
		};

		/* Of a record there is only the interface to look for. */
		if (site.link->fq || (gen->meta.unshaped && !on_host) ||
		    meta_has_hook(&gen->meta, on_host, META_HOOK_CLSACT))
			r = run_in_site(n, site.link, on_host ? -1 : hint_fd,
					check_site, &site);
	}
	/* Last: that the interface is gone is what to tell first. */
	for (int i = 0; i < HALF_MAX && r == 0; i++) {
		if (gen->meta.half[i].hook)
			r = check_engine(n, gen, (enum half)i);
	}
	return r;
}

static int check_subnets(struct natra *n, const struct pin_gen *gen)
{
	cleanup_subnets struct subnets subnets = {0};
	int r = pin_read_subnets(n, gen, &subnets);

	if (r == -ENOENT)
		return refuse(n, -EBADE, "the subnets are not pinned");
	if (r == 0 && subnets.len != gen->meta.subnets_len)
		return refuse(n, -EBADE, "there are %zu subnets, not %u",
			      subnets.len, gen->meta.subnets_len);
	return r;
}

int check_limits(struct natra *n, const struct pin_gen *gen)
{
	int r = check_subnets(n, gen);

	if (r < 0)
		return r;
	for (int i = 0; i < HALF_MAX; i++) {
		enum half half = (enum half)i;
		/* The record has what was last set. This build may derive other
		 * limits from the same policy than the build that set them. */
		const struct natra_limits *want = &gen->meta.limits[i];
		struct natra_limits have;
		cleanup_slot struct slot slot = SLOT_INIT;

		if (!gen->meta.half[i].hook)
			continue;
		r = engine_open_slot(n, &gen->meta.slot[i], &slot);
		if (r == -ENOENT)
			return refuse(n, -EBADE, "the limits of %s are gone",
				      half_name(half));
		if (r == 0)
			r = slot_get_limits(n, &slot, &have);
		if (r < 0)
			return r;
		if (memcmp(want, &have, sizeof(have)) != 0)
			return refuse(
				n, -EBADE,
				"the limits of %s are not what was last set",
				half_name(half));
	}
	return 0;
}

struct netns_seat check_seat(const struct pin_gen *gen)
{
	const struct meta *meta = &gen->meta;
	bool on_host = !meta->unshaped &&
		       !meta_has_hook(meta, false, META_HOOK_NONE) &&
		       meta->host.ifindex;
	const struct meta_link *link = on_host ? &meta->host : &meta->pod;

	return (struct netns_seat){meta_netns(link), link->ifindex, 0};
}

int check_has_link(struct natra *n, const struct pin_gen *gen)
{
	for (int i = 0; i < HALF_MAX; i++) {
		struct bpf_link_info info = {0};
		int r;

		if (gen->meta.half[i].hook != META_HOOK_TCX)
			continue;
		r = ask_link(n, gen, (enum half)i, &info);
		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0 && info.tcx.ifindex)
			return 1;
	}
	return 0;
}

/* Sets seat->exists. Runs in the network namespace of the seat. */
static int look_at_seat(void *arg)
{
	struct netns_seat *seat = arg;

	seat->exists = netns_has_link(seat->ifindex);
	return seat->exists < 0 ? seat->exists : 0;
}

int check_exists(struct natra *n, const struct pin_gen *gen)
{
	struct netns_seat seat = check_seat(gen);
	cleanup_close int fd = -1;
	int r = check_has_link(n, gen);

	if (r != 0)
		return r;
	r = netns_find(n, &seat.netns, -1, &fd);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = netns_run(NULL, fd, look_at_seat, &seat);
	return r < 0 ? fail_errno(n, r, "look for interface '%s' of '%s'",
				  gen->meta.pod.ifname, gen->meta.id)
		     : seat.exists;
}

struct entry {
	struct natra_neighbour e;
	char name[16];
	char ifname[16];
};

struct entries {
	struct entry *list;
	size_t len;
	/* What all entries of the hook that is being read have in common. */
	struct entry common;
	uint32_t own_prog_id[HALF_MAX];
};

static int add_entry(void *arg, const struct hook_program *program)
{
	struct entries *entries = arg;
	struct entry entry = entries->common;
	struct entry *list;

	list = realloc(entries->list, (entries->len + 1) * sizeof(*list));
	if (!list)
		return -ENOMEM;
	entries->list = list;
	(void)str_copy(entry.name, sizeof(entry.name), program->name);
	entry.e.prog_id = program->prog_id;
	entry.e.priority = program->priority;
	entry.e.handle = program->handle;
	for (int i = 0; i < HALF_MAX; i++) {
		if (program->prog_id &&
		    program->prog_id == entries->own_prog_id[i])
			entry.e.is_ours = true;
	}
	entries->list[entries->len++] = entry;
	entries->common.e.position++;
	return 0;
}

/* Of the hook that was read last, those before the last one of ours. */
static void note_order(struct entries *entries, size_t first)
{
	bool is_before = false;

	for (size_t i = entries->len; i-- > first;) {
		struct natra_neighbour *e = &entries->list[i].e;

		e->is_before_ours = is_before && !e->is_ours;
		is_before = is_before || e->is_ours;
	}
}

static int list_hook(const struct site *site, struct netlink *nl, bool ingress)
{
	struct hook hook = {site->link->ifindex, ingress};
	struct entries *entries = site->entries;
	size_t first = entries->len;
	int r;

	entries->common = (struct entry){
		.e.sz = sizeof(struct natra_neighbour),
		.e.direction = ingress == site->on_host
				       ? NATRA_DIRECTION_EGRESS
				       : NATRA_DIRECTION_INGRESS,
		.e.hook = "tcx",
		.e.hook_is_ingress = ingress,
	};
	(void)str_copy(entries->common.ifname, sizeof(entries->common.ifname),
		       site->link->ifname);
	r = hook_tcx_list(site->n, &hook, add_entry, entries);
	if (r < 0)
		return r;
	entries->common.e.hook = "clsact";
	r = hook_clsact_list(site->n, nl, &hook, add_entry, entries);
	note_order(entries, first);
	return r;
}

/* In the namespace of the site. */
static int list_site(void *arg)
{
	const struct site *site = arg;
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(site->n, &nl);

	if (r == 0)
		r = list_hook(site, &nl, true);
	if (r == 0)
		r = list_hook(site, &nl, false);
	return r;
}

int check_neighbours(struct natra *n, const struct pin_gen *gen,
		     natra_neighbour_fn fn, void *arg)
{
	struct entries entries = {0};
	int r = 0;

	for (int i = 0; i < HALF_MAX; i++)
		entries.own_prog_id[i] = gen->meta.half[i].prog_id;
	for (int on_host = 0; on_host < 2 && r == 0; on_host++) {
		struct site site = {
			.n = n,
			.gen = gen,
			.link = on_host ? &gen->meta.host : &gen->meta.pod,
			.on_host = on_host,
			.entries = &entries,
		};

		if (site.link->fq ||
		    meta_has_hook(&gen->meta, on_host, META_HOOK_NONE))
			r = run_in_site(n, site.link, -1, list_site, &site);
	}
	/* Here and not on the way: the caller's code runs in its own netns. */
	for (size_t i = 0; i < entries.len && r == 0; i++) {
		entries.list[i].e.prog_name = entries.list[i].name;
		entries.list[i].e.ifname = entries.list[i].ifname;
		r = fn(arg, &entries.list[i].e);
	}
	free(entries.list);
	if (r == -ENOMEM)
		return fail_errno(n, r, "list programs");
	return r;
}
