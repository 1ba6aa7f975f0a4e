/* SPDX-License-Identifier: BSD-2-Clause */
#include "podfeed.h"

void podfeed_event(const struct podfeed *feed, const struct podevent *event)
{
	health_ready(feed->health, PART_API);
	if (event->type == PODEVENT_PRESENT || event->type == PODEVENT_GONE)
		feed->seen(feed->arg, event);
}

void podfeed_unreadable(const struct podfeed *feed,
			const struct podevent *event, const char *why)
{
	health_unreadable_event(feed->health, event->namespace, event->name,
				why);
	if (podevent_has_names(event))
		feed->unreadable(feed->arg, event, why);
}
