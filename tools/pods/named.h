/* SPDX-License-Identifier: BSD-2-Clause */
/* Which interfaces of a pod its cached results name, those of Multus among them. All others a
 * process in the pod has made, or somebody without the runtime. */
#ifndef NATRA_PODS_NAMED_H
#define NATRA_PODS_NAMED_H

#include "links.h"

/*
 * Sets is_named. A result whose interface is an end of a pair names the interface that has the
 * other end on the node, whatever its name is; and else the one that has the name and the MAC of
 * the result.
 */
void named_note(int root_fd, const char *container_id,
		const struct pod_net *net, struct pod_links *links);

#endif
