/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a watch of the node's pods, at the API server or at the kubelet, hands its events on. */
#ifndef NATRA_AGENT_PODFEED_H
#define NATRA_AGENT_PODFEED_H

#include "health.h"
#include "podevent.h"

struct podfeed {
	struct health *health;
	/* Returns false if that cannot be a pod of the node, since there are too many. */
	bool (*seen)(void *arg, const struct podevent *event);
	/* Is called for an event that cannot be read but names its pod. */
	void (*unreadable)(void *arg, const struct podevent *event,
			   const char *why);
	void *arg;

	uint64_t full_ms; /* when there was no room for a pod; 0: never */
};

/* Hands a pod on that is there or has gone; other events only show that somebody answers. Returns
 * NULL, or why the watch has to end. */
const char *podfeed_event(struct podfeed *feed, const struct podevent *event);
/* Somebody answers, which is well unless he has sent too much of late. */
void podfeed_ready(const struct podfeed *feed);
void podfeed_unreadable(const struct podfeed *feed,
			const struct podevent *event, const char *why);

#endif
