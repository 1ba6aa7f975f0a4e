/* SPDX-License-Identifier: BSD-2-Clause */
/* What natractl and the agent know alike of the limits that upstream's plugin left. */
#ifndef NATRA_TOOLS_IN_THE_WAY_H
#define NATRA_TOOLS_IN_THE_WAY_H

#include <errno.h>
#include <natra/natra.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Returns whether natra_attach failed with `r` because they are where its own qdiscs would
 * be: fq takes the place of the tbf or htb, and clsact that of the ingress qdisc. The same codes
 * stand for failures that would come again when these limits are gone, so the error text
 * decides, which no other call may have changed since. */
static inline bool leftovers_are_in_the_way(const struct natra *n, int r,
					    const struct natra_policy *policy,
					    const struct natra_leftovers *left)
{
	const char *text = natra_error(n);
	char root[64];

	(void)snprintf(root, sizeof(root), "pace on '%s': qdisc '%s'",
		       left->host_ifname, left->htb ? "htb" : "tbf");
	if (r == -EBUSY)
		return left->tbf && strstr(text, root);
	return r == -EOPNOTSUPP && left->ingress_redirect &&
	       policy->attach_mode == NATRA_MODE_CLSACT_HOSTSIDE &&
	       strstr(text, "qdisc 'ingress'");
}

#endif
