/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/check.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "attach/attachment.h"
#include "attach/identity.h"
#include "kernel/hook.h"
#include "kernel/link.h"
#include "kernel/qdisc_fq.h"
#include "state/engine.h"
#include "state/group_map.h"
#include "util/cleanup.h"
#include "util/str.h"

struct site {
	struct natra *n;
	const struct pin_gen *gen;
	const struct record_link *link;
	bool on_host;
	struct entries *entries;
};

static struct site site_of(struct natra *n, const struct pin_gen *gen,
			   bool on_host)
{
	return (struct site){
		.n = n,
		.gen = gen,
		.link = on_host ? &gen->record.host : &gen->record.pod,
		.on_host = on_host,
	};
}

/* Returns 0 if the link runs the leg's program, and 1 if it is on no interface
 * any more. */
static int check_link(struct natra *n, const struct pin_gen *gen, enum leg leg)
{
	const struct record_leg *h = &gen->record.leg[leg];
	struct bpf_link_info info = {0};
	int r = identity_ask_link(n, gen, leg, &info);

	if (r == -ENOENT)
		return refuse(n, -EBADE, "the %s link is not pinned",
			      leg_name(leg));
	if (r < 0)
		return r;
	if (info.tcx.ifindex == 0)
		return 1;
	if (info.prog_id != h->prog_id)
		return refuse(n, -EBADE, "the %s link runs program %u, not %u",
			      leg_name(leg), info.prog_id, h->prog_id);
	return 0;
}

static int find_interface(const struct site *site, struct netlink *nl,
			  struct link_info *ret_link)
{
	int r = netlink_open(site->n, nl);

	return r < 0 ? r
		     : link_on_record(site->n, nl, site->link->ifindex,
				      site->link->ifname, ret_link);
}

/* Runs in the namespace of the site. */
static int check_interface(void *arg)
{
	cleanup_netlink struct netlink nl = {0};
	struct link_info link;

	return find_interface(arg, &nl, &link);
}

/* Checks that the pod's interface is the one that was limited. The TCX links are on one. */
static int check_identity(const struct site *site, const struct link_info *link)
{
	const struct record *record = &site->gen->record;
	int r = identity_look(site->n, record, link);

	if (r == IDENTITY_OTHER ||
	    (r == IDENTITY_PORT &&
	     record_has_hook(record, false, RECORD_HOOK_TCX)))
		return identity_refuse(site->n, record, link->ifname,
				       link->ifindex);
	return r < 0 ? r : 0;
}

static int check_fq(const struct site *site, struct netlink *nl)
{
	const enum natra_code code =
		site->on_host ? NATRA_CODE_HOST_FQ : NATRA_CODE_POD_FQ;
	const uint32_t want = site->gen->record.fq_orphan_mask;
	const char *changed;
	uint32_t have;
	int r = qdisc_fq_present(site->n, nl, site->link->ifindex, &have,
				 &changed);

	if (r == 0)
		return with_code(site->n, code,
				 refuse(site->n, -EBADE,
					"fq is not the root qdisc of '%s'",
					site->link->ifname));
	if (r < 0)
		return r;
	if (have != want)
		return with_code(
			site->n, code,
			refuse(site->n, -EBADE,
			       "fq of '%s' has the orphan_mask %u, not %u",
			       site->link->ifname, have, want));
	if (changed)
		return with_code(
			site->n, code,
			refuse(site->n, -EBADE,
			       "fq of '%s' has another %s than natra's",
			       site->link->ifname, changed));
	return 0;
}

/* Runs in the namespace of the site. */
static int check_site(void *arg)
{
	const struct site *site = arg;
	const struct record *record = &site->gen->record;
	cleanup_netlink struct netlink nl = {0};
	struct link_info link;
	int r = find_interface(site, &nl, &link);

	if (r == 0 && !site->on_host && !record->unshaped)
		r = check_identity(site, &link);
	if (r < 0)
		return r;
	for (int i = 0; i < LEG_MAX; i++) {
		const struct record_leg *h = &record->leg[i];
		struct hook hook = {site->link->ifindex, h->hook_ingress};
		struct hook_program own;

		if (h->hook != RECORD_HOOK_CLSACT ||
		    (h->on_host != 0) != site->on_host)
			continue;
		r = hook_clsact_find(site->n, &hook, h->prog_id, &own);
		if (r < 0)
			return r;
		if (r == 0)
			return refuse(
				site->n, -EBADE,
				"program %u is not on the clsact %s of '%s'",
				h->prog_id, hook.ingress ? "ingress" : "egress",
				site->link->ifname);
	}
	return site->link->fq ? check_fq(site, &nl) : 0;
}

/* Finds out why a TCX link is on no interface: the interface is gone, or
 * somebody has detached the link. */
static int check_unlinked(struct natra *n, const struct pin_gen *gen,
			  enum leg leg, int hint_fd)
{
	bool on_host = gen->record.leg[leg].on_host != 0;
	struct site site = site_of(n, gen, on_host);
	int r = attachment_visit(n, site.link, on_host ? -1 : hint_fd,
				 check_interface, &site);

	if (r < 0)
		return r;
	return refuse(n, -EBADE, "the %s program was detached from '%s'",
		      leg_name(leg), site.link->ifname);
}

/* Checks that a leg's slot and the program that serves it are there: without
 * them the stub lets every packet pass. */
static int check_engine(struct natra *n, const struct pin_gen *gen,
			enum leg leg)
{
	cleanup_slot struct slot slot = SLOT_INIT;
	int r = engine_open_slot(n, &gen->record.slot[leg], &slot);

	if (r == -ENOENT)
		return refuse(n, -EBADE, "the program of %s is gone from bpffs",
			      leg_name(leg));
	return r;
}

/* Checks what is at the interface on one side. Where there is only a record, the interface is
 * all that can be looked for. */
static int visit_site(struct natra *n, const struct pin_gen *gen, bool on_host,
		      int hint_fd)
{
	struct site site = site_of(n, gen, on_host);
	const bool has_qdisc =
		site.link->fq ||
		record_has_hook(&gen->record, on_host, RECORD_HOOK_CLSACT);
	cleanup_close int fd = -1;
	int r;

	if (on_host && !has_qdisc)
		return 0;
	r = attachment_open_netns(n, site.link, on_host ? -1 : hint_fd, &fd);
	/* The TCX links are attached, or it would not have come to this: the namespace is hidden
	 * from this process. */
	if (r == -ENODEV && !has_qdisc && !gen->record.unshaped) {
		forget_error(n);
		return 0;
	}
	if (r < 0)
		return r;
	r = netns_run(n, fd, check_site, &site);
	return on_host ? r : identity_explain(n, gen, r);
}

int check_attached(struct natra *n, const struct pin_gen *gen, int hint_fd)
{
	int r = 0;

	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		if (gen->record.leg[i].hook != RECORD_HOOK_TCX)
			continue;
		r = check_link(n, gen, (enum leg)i);
		if (r == 1)
			r = check_unlinked(n, gen, (enum leg)i, hint_fd);
	}
	for (int on_host = 0; on_host < 2 && r == 0; on_host++)
		r = visit_site(n, gen, on_host != 0, hint_fd);
	/* The engines come last: if the interface is gone, too, that is the
	 * better message. */
	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		if (gen->kind == RECORD_OWN && gen->record.leg[i].hook)
			r = check_engine(n, gen, (enum leg)i);
	}
	return r;
}

static int check_subnets(struct natra *n, const struct pin_gen *gen)
{
	cleanup_subnets struct subnets subnets = {0};
	int r = pin_read_subnets(n, gen, &subnets);

	if (r == -ENOENT)
		return refuse(n, -EBADE, "the subnets are not pinned");
	if (r == 0 && subnets.len != gen->record.subnets_len)
		return refuse(n, -EBADE, "there are %zu subnets, not %u",
			      subnets.len, gen->record.subnets_len);
	return r;
}

/* Checks that the programs look for classes in the map that is pinned. */
static int check_trie(struct natra *n, const struct pin_gen *gen, enum leg leg)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info), id = 0;
	cleanup_close int fd = -1;
	int r = pin_open_subnets(n, gen, &fd);

	if (r == 0)
		r = engine_trie_id(n, &gen->record.slot[leg], &id);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && bpf_obj_get_info_by_fd(fd, &info, &len) < 0)
		return fail_errno(n, -errno, "ask for the map of classes");
	return r == 0 && info.id == id
		       ? 0
		       : refuse(n, -EBADE,
				"the programs of %s have other classes",
				leg_name(leg));
}

/* Compares the limits of all slots of a leg with the record, which has what was last set:
 * this build may derive other limits from the same policy than the build that set them. */
static int check_leg(struct natra *n, const struct pin_gen *gen,
		     const struct record_classes *classes, enum leg leg)
{
	const struct record *record = &gen->record;
	cleanup_slot struct slot slot = SLOT_INIT;
	int r = engine_open_slot(n, &record->slot[leg], &slot);

	if (r == -ENOENT)
		return refuse(n, -EBADE, "the limits of %s are gone",
			      leg_name(leg));
	for (uint32_t i = 0; i < record_slots(record) && r == 0; i++) {
		const struct natra_limits *want =
			record_limits(record, classes, i, leg);
		const struct slot of = slot_of_class(&slot, i);
		struct natra_limits have;

		r = slot_get_limits(n, &of, &have);
		if (r == 0 && memcmp(want, &have, sizeof(have)) != 0)
			return refuse(
				n, -EBADE,
				"the limits of %s are not what was last set",
				leg_name(leg));
	}
	return r < 0 || !record_has_classes(record) ? r
						    : check_trie(n, gen, leg);
}

int check_limits(struct natra *n, const struct pin_gen *gen)
{
	struct record_classes classes;
	int r = check_subnets(n, gen);

	if (r == 0 && gen->record.group_number)
		r = groups_check(n, &gen->record);
	if (r == 0 && record_slots(&gen->record) > 1)
		r = pin_read_classes(n, gen, &classes);
	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		if (gen->record.leg[i].hook)
			r = check_leg(n, gen, &classes, (enum leg)i);
	}
	return r;
}

const struct record_link *check_sought_link(const struct pin_gen *gen)
{
	const struct record *record = &gen->record;
	bool on_host = !record->unshaped &&
		       !record_has_hook(record, false, RECORD_HOOK_NONE) &&
		       record->host.ifindex;

	return on_host ? &record->host : &record->pod;
}

struct existence {
	uint32_t ifindex;
	bool exists;
};

/* Runs in the network namespace of the interface. */
static int look_for_link(void *arg)
{
	struct existence *link = arg;
	int r = netns_has_link(link->ifindex);

	link->exists = r == 1;
	return r < 0 ? r : 0;
}

int check_exists(struct natra *n, const struct pin_gen *gen)
{
	const struct record_link *link = check_sought_link(gen);
	struct existence found = {.ifindex = link->ifindex};
	int r = identity_exists(n, gen);

	if (r != 0)
		return r;
	r = attachment_visit(n, link, -1, look_for_link, &found);
	if (r == -ENODEV)
		return 0;
	return r < 0 ? fail_errno(n, r, "look for interface '%s' of '%s'",
				  link->ifname, gen->record.id)
		     : found.exists;
}

struct entry {
	struct natra_neighbour e;
	char name[sizeof(((struct hook_program *)0)->label)];
	char ifname[16];
};

struct entries {
	struct entry *list;
	size_t len;
	/* This is what all entries of the hook that is being read have in
	 * common. */
	struct entry common;
	uint32_t own_prog_id[LEG_MAX];
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
	/* Some loaders, such as that of AWS's agent, give their programs no name. */
	(void)str_copy(entry.name, sizeof(entry.name),
		       program->name[0] ? program->name : program->label);
	entry.e.prog_id = program->prog_id;
	entry.e.priority = program->priority;
	entry.e.handle = program->handle;
	for (int i = 0; i < LEG_MAX; i++) {
		if (program->prog_id &&
		    program->prog_id == entries->own_prog_id[i])
			entry.e.is_ours = true;
	}
	entries->list[entries->len++] = entry;
	entries->common.e.position++;
	return 0;
}

/* Marks the programs, among those of the hook that was read last, that run
 * before the last one of ours. */
static void note_order(struct entries *entries, size_t first)
{
	bool is_before = false;

	for (size_t i = entries->len; i-- > first;) {
		struct natra_neighbour *e = &entries->list[i].e;

		e->is_before_ours = is_before && !e->is_ours;
		is_before = is_before || e->is_ours;
	}
}

/* Adds the attachment's own filter behind those that were read of too many, unless it is
 * one of them. The kernel lists filters in the order in which they run. */
static int add_own(const struct site *site, const struct hook *hook,
		   size_t first)
{
	const struct record *record = &site->gen->record;
	struct entries *entries = site->entries;

	for (int i = 0; i < LEG_MAX; i++) {
		const struct record_leg *leg = &record->leg[i];
		struct hook_program own;
		int r;

		if (leg->hook != RECORD_HOOK_CLSACT ||
		    (leg->on_host != 0) != site->on_host ||
		    (leg->hook_ingress != 0) != hook->ingress)
			continue;
		for (size_t at = first; at < entries->len; at++) {
			if (entries->list[at].e.prog_id == leg->prog_id)
				return 0;
		}
		r = hook_clsact_find(site->n, hook, leg->prog_id, &own);
		return r == 1 ? add_entry(entries, &own) : r;
	}
	return 0;
}

static int list_hook(const struct site *site, bool ingress)
{
	struct hook hook = {site->link->ifindex, ingress};
	struct entries *entries = site->entries;
	size_t first = entries->len;
	bool is_cut = false;
	int r;

	entries->common = (struct entry){
		.e.sz = sizeof(struct natra_neighbour),
		.e.direction = ingress == site->on_host
				       ? NATRA_DIRECTION_EGRESS
				       : NATRA_DIRECTION_INGRESS,
		.e.hook = "tcx",
		.e.hook_is_ingress = ingress,
		.e.is_on_host = site->on_host,
	};
	(void)str_copy(entries->common.ifname, sizeof(entries->common.ifname),
		       site->link->ifname);
	r = hook_tcx_list(site->n, &hook, add_entry, entries);
	if (r < 0)
		return r;
	entries->common.e.hook = "clsact";
	r = hook_clsact_list(site->n, &hook, add_entry, entries, &is_cut);
	if (r == 0 && is_cut)
		r = add_own(site, &hook, first);
	note_order(entries, first);
	return r;
}

/* Runs in the namespace of the site. */
static int list_site(void *arg)
{
	const struct site *site = arg;
	int r = list_hook(site, true);

	return r == 0 ? list_hook(site, false) : r;
}

/* Leaves no entry of a side that cannot be read as a whole. */
static int list_side(struct natra *n, const struct pin_gen *gen, bool on_host,
		     struct entries *entries)
{
	const size_t len = entries->len;
	struct site site = site_of(n, gen, on_host);
	int r = 0;

	site.entries = entries;
	if (site.link->fq ||
	    record_has_hook(&gen->record, on_host, RECORD_HOOK_NONE))
		r = attachment_visit(n, site.link, -1, list_site, &site);
	if (r < 0)
		entries->len = len;
	return r;
}

int check_neighbours(struct natra *n, const struct pin_gen *gen,
		     natra_neighbour_fn fn, void *arg)
{
	struct entries entries = {0};
	struct kept_error failure;
	int failed, r;

	for (int i = 0; i < LEG_MAX; i++)
		entries.own_prog_id[i] = gen->record.leg[i].prog_id;
	/* A pod can take its own interface away, and does not hide the host side by that. */
	failed = list_side(n, gen, false, &entries);
	failure = keep_error(n);
	r = list_side(n, gen, true, &entries);
	if (r == -ENOMEM)
		(void)fail_errno(n, r, "list programs");
	/* The callback is called here and not in list_site, so that the
	 * caller's code runs in the caller's network namespace. */
	for (size_t i = 0; i < entries.len && r == 0; i++) {
		entries.list[i].e.prog_name = entries.list[i].name;
		entries.list[i].e.ifname = entries.list[i].ifname;
		forget_error(n);
		r = fn(arg, &entries.list[i].e);
	}
	free(entries.list);
	if (r || failed == 0)
		return r;
	restore_error(&failure);
	return failed == -ENOMEM ? fail_errno(n, failed, "list programs")
				 : failed;
}

static int is_in_front(void *arg, const struct natra_neighbour *e)
{
	const struct record *record = arg;

	/* Nothing gets a filter in front of a link. */
	const char *hook = record_has_hook(record, true, RECORD_HOOK_TCX)
				   ? "tcx"
				   : "clsact";

	return e->is_before_ours && e->is_on_host && e->prog_id &&
	       strcmp(e->hook, hook) == 0;
}

bool check_is_overtaken(struct natra *n, const struct pin_gen *gen)
{
	KEEP_ERROR_SCOPE(n);

	return record_has_hook(&gen->record, true, RECORD_HOOK_NONE) &&
	       check_neighbours(n, gen, is_in_front, (void *)&gen->record) == 1;
}
