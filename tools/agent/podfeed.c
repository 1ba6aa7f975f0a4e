/* SPDX-License-Identifier: BSD-2-Clause */
#include "podfeed.h"

#include "loop.h"

/* Longer than a watch that has failed waits, so that what lasts is logged once. */
#define FULL_MS 60000

void podfeed_ready(const struct podfeed *feed)
{
	if (!feed->full_ms || clock_ms() - feed->full_ms > FULL_MS)
		health_ready(feed->health, PART_API);
}

const char *podfeed_event(struct podfeed *feed, const struct podevent *event)
{
	if ((event->type == PODEVENT_PRESENT || event->type == PODEVENT_GONE) &&
	    !feed->seen(feed->arg, event)) {
		feed->full_ms = clock_ms();
		return "sends more pods than a node has";
	}
	podfeed_ready(feed);
	return NULL;
}

void podfeed_unreadable(const struct podfeed *feed,
			const struct podevent *event, const char *why)
{
	health_unreadable_event(feed->health, event->namespace, event->name,
				why);
	if (podevent_has_names(event))
		feed->unreadable(feed->arg, event, why);
}
