/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the counters of many slots: each bank is opened once, and its states are
 * mapped, because a lookup would copy the whole state for a few counters. */
#ifndef NATRA_STATE_VIEW_H
#define NATRA_STATE_VIEW_H

#include "base/handle.h"
#include "state/record.h"

/* The banks that were opened so far. */
struct views {
	struct view *list;
	size_t len;
};

/* The counters of one slot, as views_read sums them. */
struct view_counters {
	struct natra_counters counters;
	/* The flows in its table whose last packet is at most a minute old. */
	uint32_t heavy_flows;
	uint64_t events_reported;
	uint64_t events_suppressed;
	uint64_t over_ns; /* see struct natra_over */
	uint32_t over_percent;
	struct natra_connects connects;
};

void views_close(struct views *views);
#define cleanup_views __attribute__((cleanup(views_close)))

/* Reads the counters of a slot. Returns -ENOENT without an error text if the
 * slot is not there or has become another attachment's, and -ESTALE if its maps
 * are not of this layout. */
int views_read(struct natra *n, struct views *views,
	       const struct record_slot *slot,
	       struct view_counters *ret_counters);

/* Reads what carried.h has on record of a slot, likewise. */
int views_read_carried(struct natra *n, struct views *views,
		       const struct record_slot *slot,
		       struct natra_carried *ret_carried);

#endif
