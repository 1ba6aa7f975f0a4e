/* SPDX-License-Identifier: BSD-2-Clause */
#include "traffic.h"

struct traffic traffic_of(const struct natra_direction_stats *stats,
			  bool is_paced)
{
	return (struct traffic){
		.passed = stats->mice.bytes + stats->admitted.bytes +
			  stats->paced.bytes + stats->marked.bytes +
			  stats->unlimited.bytes + stats->other.bytes,
		.held = stats->paced.bytes +
			(is_paced ? stats->marked.bytes : 0),
		.marked = stats->marked.bytes,
		.dropped = stats->dropped_rate.bytes +
			   stats->dropped_horizon.bytes,
	};
}

struct traffic traffic_of_group(const struct natra_group_info *group,
				enum natra_direction direction)
{
	return (struct traffic){
		.passed = group->free_bytes[direction] +
			  (direction == NATRA_DIRECTION_INGRESS
				   ? group->ingress_charged.bytes
				   : group->egress_charged.bytes),
	};
}
