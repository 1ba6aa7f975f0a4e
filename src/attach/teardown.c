/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/teardown.h"

#include <errno.h>

#include "attach/attachment.h"
#include "attach/gso.h"
#include "kernel/hook.h"
#include "kernel/qdisc_fq.h"
#include "state/engine.h"
#include "util/cleanup.h"

struct site {
	struct natra *n;
	const struct record *record;
	const struct record_link *link;
	bool on_host;
	bool remove_fq;
	bool remove_clsact;
	bool kept;         /* another record goes on with it */
	uint32_t gso_segs; /* the value that shall stay */
};

static bool changes_gso(const struct site *site)
{
	return !site->on_host && (site->record->gso_segs != site->gso_segs ||
				  site->record->gso_before);
}

static int is_pacer(void *arg, const struct hook_program *program)
{
	(void)arg;
	return hook_program_may_pace(program);
}

/* Returns whether another attachment, as both ends of a veth can have one, has its packets held by
 * the fq of this interface. An fq too many does no harm, so a program that cannot be looked at
 * counts as one of those. */
static int has_other_pacer(const struct site *site)
{
	const struct hook egress = {.ifindex = site->link->ifindex};
	bool is_cut = false;
	int r = hook_tcx_list(site->n, &egress, is_pacer, NULL);

	if (r == 0)
		r = hook_clsact_list(site->n, &egress, is_pacer, NULL, &is_cut);
	/* The interface has gone, and fq with it. */
	if (r == -ENODEV) {
		forget_error(site->n);
		return 0;
	}
	return r == 0 ? is_cut : r;
}

/* Removes fq for the last of those that it holds packets for. The site's own programs are gone. */
static int remove_fq(const struct site *site, struct netlink *nl)
{
	int r = has_other_pacer(site);

	return r == 0 ? qdisc_fq_remove(site->n, nl, site->link->ifindex)
		      : (r < 0 ? r : 0);
}

/* Runs in the namespace of the site. */
static int clean_site(void *arg)
{
	const struct site *site = arg;
	cleanup_netlink struct netlink nl = {0};
	int r;

	r = netlink_open(site->n, &nl);
	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		const struct record_leg *leg = &site->record->leg[i];
		struct hook hook = {
			.ifindex = site->link->ifindex,
			.ingress = leg->hook_ingress,
		};

		if (leg->hook == RECORD_HOOK_CLSACT && leg->prog_id &&
		    (leg->on_host != 0) == site->on_host)
			r = hook_clsact_detach(site->n, &nl, &hook,
					       leg->prog_id);
	}
	if (r == 0 && site->remove_fq)
		r = remove_fq(site, &nl);
	if (r == 0 && site->remove_clsact)
		r = hook_clsact_remove(site->n, &nl, site->link->ifindex);
	if (r < 0 || !changes_gso(site))
		return r;
	r = gso_change(site->n, &nl, site->record, site->gso_segs);
	/* Without a record nobody could do it later, and what the kernel refuses it refuses then, too. */
	return site->kept || r == -ENODEV || r == -EINVAL ? 0 : r;
}

static bool same_link(const struct record_link *a, const struct record_link *b)
{
	return a->ifindex == b->ifindex && a->netns_cookie == b->netns_cookie;
}

int teardown_note(struct natra *n, struct netlink *nl,
		  const struct record *before, struct record *record)
{
	int r;

	if (record->mode != NATRA_ATTACH_MODE_CLSACT_PODSIDE)
		return 0;
	r = hook_clsact_is_there(n, nl, record->pod.ifindex);
	record->pod_clsact = r == 0 || (before && before->pod_clsact &&
					same_link(&before->pod, &record->pod));
	return r < 0 ? r : 0;
}

/* Returns whether a program that the record has on a clsact of the site still exists. Nobody else
 * holds it: it is not pinned. */
static bool has_program(const struct site *site)
{
	for (int i = 0; i < LEG_MAX; i++) {
		const struct record_leg *leg = &site->record->leg[i];
		struct hook_program program = {.prog_id = leg->prog_id};

		if (leg->hook != RECORD_HOOK_CLSACT || !leg->prog_id ||
		    (leg->on_host != 0) != site->on_host)
			continue;
		hook_program_look(&program);
		if (hook_program_is_natra(&program))
			return true;
	}
	return false;
}

/* Returns 0 if the namespace of the site is gone, and not only hidden from this process: then packets
 * still pass the filters, whose slots another attachment must not get. */
static int confirm_gone(const struct site *site)
{
	for (int i = 0; has_program(site); i++) {
		if (i == DYING_LOOKS)
			return refuse(
				site->n, -EBUSY,
				"the netns of '%s' is hidden from this process, but the filters of '%s' are there",
				site->link->ifname, site->record->id);
		attachment_wait_dying();
	}
	log_line(site->n, NATRA_LOG_DEBUG, "%s", last_error(site->n));
	return 0;
}

static int teardown_site(struct natra *n, const struct record *record,
			 const struct record *keep, bool on_host, int hint_fd)
{
	const struct record_link *link = on_host ? &record->host : &record->pod;
	const struct record_link *of_keep =
		!keep ? NULL : (on_host ? &keep->host : &keep->pod);
	bool kept = of_keep && same_link(link, of_keep);
	struct site site = {
		.n = n,
		.record = record,
		.link = link,
		.on_host = on_host,
		.remove_fq = link->fq && !(kept && of_keep->fq),
		.remove_clsact = !on_host && record->pod_clsact &&
				 !(kept && keep->pod_clsact),
		.kept = kept,
		.gso_segs = kept ? keep->gso_segs : 0,
	};
	int r;

	if (!link->ifindex ||
	    (!site.remove_fq && !changes_gso(&site) &&
	     !record_has_hook(record, on_host, RECORD_HOOK_CLSACT)))
		return 0;
	r = attachment_visit(n, link, on_host ? -1 : hint_fd, clean_site,
			     &site);
	return r == -ENODEV ? confirm_gone(&site) : r;
}

int teardown_gen(struct natra *n, const struct pin_gen *gen,
		 const struct record *keep, int hint_fd)
{
	int r;

	if (gen->kind == RECORD_NONE)
		return pin_remove_gen(n, gen);
	r = pin_detach_links(n, gen);
	if (r == 0)
		r = teardown_site(n, &gen->record, keep, false, hint_fd);
	if (r == 0)
		r = teardown_site(n, &gen->record, keep, true, hint_fd);
	/* Slots of another ABI are not on record here: engine_sweep removes its
	 * engines. */
	for (int i = 0; i < LEG_MAX && r == 0; i++)
		r = engine_leave(n, &gen->record.slot[i]);
	return r < 0 ? r : pin_remove_gen(n, gen);
}

void teardown_undo(struct natra *n, const struct pin_gen *gen,
		   const struct record *keep, int hint_fd)
{
	KEEP_ERROR_SCOPE(n);

	if (teardown_gen(n, gen, keep, hint_fd) < 0)
		log_line(n, NATRA_LOG_ERROR, "undo: %s", last_error(n));
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
			    others->except ? &others->except->record : NULL,
			    others->hint_fd);
}

int teardown_all(struct natra *n, const struct pin_dir *dir,
		 const struct pin_gen *except, int hint_fd)
{
	struct others others = {n, except, hint_fd};

	return pin_foreach_gen(n, dir->path, teardown_other, &others);
}
