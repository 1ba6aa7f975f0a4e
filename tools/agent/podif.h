/* SPDX-License-Identifier: BSD-2-Clause */
/* A pod's interface on this node, of libcni's cache, and how it gets limits while
 * the pod runs. */
#ifndef NATRA_AGENT_PODIF_H
#define NATRA_AGENT_PODIF_H

#include "../pods/interface.h"
#include "../pods/wish.h"
#include "jobs.h"

struct podif {
	const struct jobs *jobs;
	const struct wish_source *source;
	struct natra *n;
	int root_fd;
	const char *path; /* of its file in the cache */
	const struct cached *cached;
	char id[NATRA_ID_MAX + 1];
	char pod[NATRA_NAME_MAX + 1]; /* "<namespace>/<pod>", or "" */
	bool may_drain; /* upstream's queues may take up to a second */
	char *why; /* INTERFACE_WHY_MAX bytes: why its interface was refused, or "" */
};

/* Fills in the id and the pod. Returns false if nothing can be attached there. */
bool podif_fill(struct podif *podif, const char *path,
		const struct cached *cached);
/* Logs a line about it. `error` may be NULL. */
void podif_log(const struct podif *podif, enum natra_log_level level,
	       const char *msg, const char *error);

enum podif_change {
	PODIF_SAME,     /* nothing was to do, or the pod has ended */
	PODIF_LIMITED,  /* it was attached */
	PODIF_REPLACED, /* natra's limits hold, and upstream's are gone */
	PODIF_LATER, /* nothing was done, since upstream's queues must drain */
};

/* Returns the text of an error that a call about it has returned. */
const char *podif_error(const struct podif *podif, int r);

/* Returns whether the last call of the library, which returned `r`, failed because the
 * pod has ended. */
bool podif_has_ended(const struct podif *podif, int r);

/* Returns 1 if limits of natra's hold, 0 if not, or -errno if that is not known. */
int podif_query(const struct podif *podif, struct natra_info *ret_info);

/* Limits a pod that has no limits of natra's, or changes those that it has. Both put it into
 * its group as wish_attach does, after which `wish` has what holds. They return 0 or
 * -errno. */
int podif_attach(const struct podif *podif, struct wish *wish,
		 enum podif_change *ret_change);
int podif_configure(const struct podif *podif, struct wish *wish);
/* Removes what upstream's plugin left at a pod that has limits of natra's, if that
 * was asked for and natra's policy there limits the same directions. */
int podif_finish(const struct podif *podif, const struct natra_policy *policy,
		 enum podif_change *ret_change);

#endif
