/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/gso.h"

#include <errno.h>

#include "attach/attachment.h"
#include "kernel/link.h"
#include "policy/mode.h"
#include "state/journal.h"

#define UNTOUCHED_SEGS 65535 /* the kernel's GSO_MAX_SEGS */

uint32_t gso_segs(const struct record *record,
		  const struct natra_policy *policy)
{
	/* TCP takes a drop on the host side for a loss on the way. */
	return mode_is_hostside((enum natra_attach_mode)record->mode)
		       ? 0
		       : policy_gso_segs(policy, record->edt);
}

void gso_plan(struct record *record, const struct record *before, uint32_t segs)
{
	const uint32_t had =
		before->gso_segs ? before->gso_segs : UNTOUCHED_SEGS;
	uint32_t left = before->gso_before;

	/* The kernel's own value is replaced in any case, so it needs no place. */
	if (before->gso_segs != segs && (!left || left == UNTOUCHED_SEGS))
		left = had;
	record->gso_segs = segs;
	record->gso_before = left;
}

struct change {
	struct natra *n;
	const struct record *record;
	uint32_t to;
};

static int apply(const struct change *c, struct netlink *nl)
{
	const struct record *record = c->record;
	const uint32_t ifindex = record->pod.ifindex;
	const uint32_t to = c->to ? c->to : UNTOUCHED_SEGS;
	struct link_info link;
	int r = link_by_index(nl, ifindex, &link);

	if (r < 0)
		return r == -ENODEV
			       ? r
			       : fail_errno(c->n, r, "look up interface %u",
					    ifindex);
	if (link.gso_max_segs == to ||
	    (link.gso_max_segs != UNTOUCHED_SEGS &&
	     link.gso_max_segs != record->gso_segs &&
	     link.gso_max_segs != record->gso_before))
		return 0;
	return link_set_gso_max_segs(c->n, nl, ifindex, to);
}

static int apply_here(void *arg)
{
	const struct change *c = arg;
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(c->n, &nl);

	return r < 0 ? r : apply(c, &nl);
}

/* An interface that is gone sends nothing. */
static void warn(struct natra *n, int r)
{
	if (r < 0 && r != -ENODEV)
		log_line(n, NATRA_LOG_WARN, "GSO packets stay as they are: %s",
			 last_error(n));
}

int gso_change(struct natra *n, struct netlink *nl, const struct record *record,
	       uint32_t to)
{
	const struct change c = {n, record, to};
	int r = apply(&c, nl);

	warn(n, r);
	return r;
}

void gso_settle(struct natra *n, struct pin_gen *gen, int hint_fd)
{
	struct record *record = &gen->record;
	const uint32_t before = record->gso_before;
	struct change c = {n, record, record->gso_segs};
	int r;

	if (!before)
		return;
	r = attachment_visit(n, &record->pod, hint_fd, apply_here, &c);
	if (r == 0) {
		record->gso_before = 0;
		r = journal_write(n, gen, JOURNAL_GSO);
		if (r < 0)
			record->gso_before = before;
	}
	warn(n, r);
}
