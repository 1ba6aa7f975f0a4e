/* SPDX-License-Identifier: BSD-2-Clause */
/* What became of a direction's packets, in the words that people read. */
#ifndef NATRA_COMMON_TRAFFIC_H
#define NATRA_COMMON_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include <natra/natra.h>

struct traffic {
	uint64_t passed; /* with those that were held or marked */
	uint64_t held;
	uint64_t marked;
	uint64_t dropped;
};

/* Takes the bytes that were counted of a direction. Packets that are marked have been held
 * as well where the direction is paced. */
struct traffic traffic_of(const struct natra_direction_stats *stats,
			  bool is_paced);

/* A group has counted only what passed, charged to it or free: its members, whose counters are
 * apart, hold and drop. */
struct traffic traffic_of_group(const struct natra_group_info *group,
				enum natra_direction direction);

#endif
