/* SPDX-License-Identifier: BSD-2-Clause */
/* Reports pods whose annotations are wrong, or ask for too much, as Events that kubectl shows. */
#ifndef NATRA_AGENT_REPORTER_H
#define NATRA_AGENT_REPORTER_H

#include "../common/log.h"
#include "api.h"
#include "backoff.h"
#include "edits_job.h"
#include "health.h"
#include "tenants.h"

#define REPORTER_QUEUE_MAX 64

/* An Event that waits. */
struct reporter_event {
	char *space, *path, *body;
	/* Those of a namespace have the same. */
	uint64_t due_ms;
	struct backoff backoff;
};

struct reporter {
	struct api *api;
	struct log *log;
	struct health *health;
	const char *node;
	struct api_request request;
	struct timer soon;
	struct tenants sent;
	struct reporter_event sending; /* its space is NULL: none */
	struct reporter_event queue[REPORTER_QUEUE_MAX]; /* the oldest first */
	size_t len;
	bool is_full; /* Events were lost, and the queue is still long */
};

/* The members api to node are set by the caller. Returns 0 or -errno. */
int reporter_open(struct reporter *r);
/* Queues an Event, unless there are too many at once, of a pod, a namespace or the node. */
void reporter_add(struct reporter *r, const struct edit *edit,
		  const char *reason, const char *message);
void reporter_close(struct reporter *r);

#endif
