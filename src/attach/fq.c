/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/fq.h"

#include "attach/attachment.h"
#include "kernel/qdisc_fq.h"
#include "util/cleanup.h"

struct site {
	struct natra *n;
	const struct record_link *link;
};

/* Runs in the namespace of the site. */
static int renew_here(void *arg)
{
	const struct site *site = arg;
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(site->n, &nl);

	return r < 0 ? r : qdisc_fq_add(site->n, &nl, site->link->ifindex);
}

int fq_renew(struct natra *n, struct pin_gen *gen, int pod_fd)
{
	struct record *record = &gen->record;
	struct site sites[] = {{n, &record->pod}, {n, &record->host}};
	int r = 0;

	if (record->fq_orphan_mask == QDISC_FQ_ORPHAN_MASK)
		return 0;
	for (int on_host = 0; on_host < 2 && r == 0; on_host++) {
		struct site *site = &sites[on_host];

		if (!site->link->fq)
			continue;
		r = attachment_visit(n, site->link, on_host ? -1 : pod_fd,
				     renew_here, site);
		if (r == 0)
			record->fq_orphan_mask = QDISC_FQ_ORPHAN_MASK;
	}
	return r;
}
