/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/gso.h"

#include <errno.h>

#include "attach/attachment.h"
#include "kernel/link.h"
#include "policy/mode.h"

#define UNTOUCHED_SEGS 65535 /* the kernel's GSO_MAX_SEGS */

uint32_t gso_segs(const struct record *record,
		  const struct natra_policy *policy)
{
	/* TCP takes a drop on the host side for a loss on the way. */
	return mode_is_hostside((enum natra_attach_mode)record->mode)
		       ? 0
		       : policy_gso_segs(policy, record->edt);
}

struct change {
	struct natra *n;
	uint32_t ifindex;
	uint32_t from;
	uint32_t to;
};

static int apply(const struct change *c, struct netlink *nl)
{
	uint32_t to = c->to ? c->to : UNTOUCHED_SEGS;
	struct link_info link;
	int r = link_by_index(nl, c->ifindex, &link);

	if (r < 0)
		return r == -ENODEV
			       ? 0
			       : fail_errno(c->n, r, "look up interface %u",
					    c->ifindex);
	if (link.gso_max_segs == to || (link.gso_max_segs != UNTOUCHED_SEGS &&
					link.gso_max_segs != c->from))
		return 0;
	return link_set_gso_max_segs(c->n, nl, c->ifindex, to);
}

static int apply_here(void *arg)
{
	const struct change *c = arg;
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(c->n, &nl);

	return r < 0 ? r : apply(c, &nl);
}

static void warn(struct natra *n, int r)
{
	if (r < 0)
		log_line(n, NATRA_LOG_WARN, "GSO packets stay as they are: %s",
			 last_error(n));
}

void gso_change(struct natra *n, struct netlink *nl, uint32_t ifindex,
		uint32_t from, uint32_t to)
{
	struct change c = {n, ifindex, from, to};

	warn(n, apply(&c, nl));
}

void gso_change_in(struct natra *n, const struct record_link *pod,
		   uint32_t from, uint32_t to)
{
	struct change c = {n, pod->ifindex, from, to};
	int r = attachment_visit(n, pod, -1, apply_here, &c);

	warn(n, r == -ENODEV ? 0 : r);
}
