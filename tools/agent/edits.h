/* SPDX-License-Identifier: BSD-2-Clause */
/* The pods whose annotations have changed, on the way to their limits. */
#ifndef NATRA_AGENT_EDITS_H
#define NATRA_AGENT_EDITS_H

#include "backoff.h"
#include "edits_job.h"
#include "podevent.h"
#include "tenants.h"
#include "work.h"

/* The number of pods that are remembered. A pod that was forgotten is compared
 * again. */
#define EDITS_SEEN_MAX  1024
/* What the annotations of all edits may take, of which a kubelet's 110 pods have less. Past that
 * an edit has none, and the pod is read again later. */
#define EDITS_BYTES_MAX (16 << 20)
/* How many pods may have an edit that waits: no node has as many. Each is looked for in a list. */
#define EDITS_PODS_MAX  2000

struct edits_queue {
	const struct jobs *jobs; /* their configuration may change */
	struct work work;
	struct timer next;
	/* Each pod has one entry at most, here or among those that have failed, or have to
	 * wait, and are tried again later, each at its own time. */
	struct edit *first, **end;
	struct edit *later;
	struct timer again;
	size_t len;   /* of both lists */
	size_t bytes; /* of the annotations of both */
	/* When pods may be read again for them, and how much later once more; 0: none had
	 * to be. */
	uint64_t reread_ms, reread_wait_ms;
	/* The hash of the annotations that a pod had, at a place that follows from its
	 * uid. */
	struct {
		uint64_t uid, annotations;
	} seen[EDITS_SEEN_MAX];
	/* What was logged of edits; how many are not logged each, the namespace of the first of them,
	 * and when their number is logged. */
	struct tenants lines;
	uint64_t unsaid;
	char unsaid_namespace[64];
	struct timer sum_up;
	/* Is called for annotations that are wrong, or that have not taken
	 * effect. NULL: do not. */
	void (*refused)(void *arg, const struct edit *edit,
			const struct edit_result *result);
	/* Is called for those that have changed the limits of a pod. NULL: do not. */
	void (*followed)(void *arg);
	/* Is called to get an event of each pod again. */
	void (*reread)(void *arg);
	void *arg;
};

/* The members jobs and refused to arg are set by the caller. */
int edits_open(struct edits_queue *q, struct workers *workers);
/* Takes the annotations of a pod, and compares its limits if they are new. Returns false if there
 * is no room for another pod. */
bool edits_add(struct edits_queue *q, const struct podevent *event);
void edits_remove(struct edits_queue *q, const struct podevent *event);
/* The next event of each pod counts even if its annotations are the same. */
void edits_forget(struct edits_queue *q);
void edits_close(struct edits_queue *q);

#endif
