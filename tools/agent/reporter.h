/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports pods whose annotations are wrong, as Events that kubectl shows. */
#ifndef NATRA_AGENT_REPORTER_H
#define NATRA_AGENT_REPORTER_H

#include "../common/log.h"
#include "api.h"
#include "budget.h"
#include "edits_job.h"

#define REPORTER_QUEUE_MAX 64
/* How many pods and namespaces are counted at once. Of two that have the same place, which
 * follows from a hash, the later one begins anew: the budget of the node bounds that. */
#define REPORTER_SHARES    256

/* What one pod or namespace has sent since a time. */
struct reporter_share {
	uint64_t key, since_ms;
	size_t count;
};

struct reporter {
	struct api *api;
	struct log *log;
	const char *node;
	struct api_request request;
	struct budget budget;
	struct reporter_share pods[REPORTER_SHARES];
	struct reporter_share namespaces[REPORTER_SHARES];
	/* A ring of what waits. */
	struct {
		char *path, *body;
	} queue[REPORTER_QUEUE_MAX];
	size_t first, len;
};

/* The members api to node are set by the caller. */
void reporter_open(struct reporter *r);
/* Queues an Event. If there are too many at once, of a pod, a namespace or the node, the rest
 * is only in the log. */
void reporter_add(struct reporter *r, const struct edit *edit,
		  const char *message);
void reporter_close(struct reporter *r);

#endif
