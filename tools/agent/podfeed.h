/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a watch of the node's pods, at the API server or at the kubelet, hands its events on. */
#ifndef NATRA_AGENT_PODFEED_H
#define NATRA_AGENT_PODFEED_H

#include "health.h"
#include "podevent.h"

struct podfeed {
	struct health *health;
	void (*seen)(void *arg, const struct podevent *event);
	/* Is called for an event that cannot be read but names its pod. */
	void (*unreadable)(void *arg, const struct podevent *event,
			   const char *why);
	void *arg;
};

/* Hands a pod on that is there or has gone; other events only show that somebody answers. */
void podfeed_event(const struct podfeed *feed, const struct podevent *event);
void podfeed_unreadable(const struct podfeed *feed,
			const struct podevent *event, const char *why);

#endif
