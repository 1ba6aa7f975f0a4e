/* SPDX-License-Identifier: BSD-2-Clause */
/* How an event is shown. */
#ifndef NATRACTL_EVENTS_H
#define NATRACTL_EVENTS_H

#include <natra/natra.h>

#include "json.h"

cJSON *event_json(const struct natra_event *event);

#endif
