/* SPDX-License-Identifier: BSD-2-Clause */
/* The story of an attachment: what is put where, in which order, and how it is
 * undone. No system calls of its own. */
#ifndef NATRA_SHAPER_H
#define NATRA_SHAPER_H

#include "link.h"
#include "pin.h"

/* The interface to shape, as it was found. */
struct scene {
	int pod_fd; /* its namespace, -1: the caller's own */
	struct netns_id pod_netns;
	struct netns_id host_netns; /* the caller's */
	struct link_info pod;
	bool foreign_natra; /* natra programs are on its hooks already */
};

struct request {
	const char *id;
	const char *network;
	const char *label;
	const struct natra_policy *policy;
};

/* Looks the interface up in the namespace pod_fd. */
int shaper_scene(struct natra *n, int pod_fd, const char *ifname,
		 struct scene *ret_scene);

/* Create or replace, under the lock of `key`. */
int shaper_attach(struct natra *n, const struct pin_key *key,
		  const struct scene *scene, const struct request *request);

/* Writes new limits into a live generation and records them. */
int shaper_set_limits(struct natra *n, struct pin_gen *gen,
		      const struct natra_policy *policy);

/* Whether the generation has programs for each direction that is limited. */
bool shaper_covers(const struct meta *meta, const struct natra_policy *policy);

#endif
