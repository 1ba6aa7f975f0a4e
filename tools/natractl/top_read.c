/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the library for what `natractl top` shows. */
#include <stdlib.h>
#include <string.h>

#include "../../src/util/clock.h"
#include "../common/memory.h"
#include "flows.h"
#include "info.h"
#include "top.h"

struct readings {
	const struct top *top;
	struct top_reading *items;
	size_t len;
};

static struct top_reading start_reading(const struct natra_info *info,
					enum natra_direction direction)
{
	const bool into = direction == NATRA_DIRECTION_INGRESS;
	const struct natra_policy *limits = &info->effective;
	struct top_reading reading = {
		.direction = direction,
		.unshaped = info->unshaped,
		.limit_bits_per_sec = into ? limits->ingress_rate_bits_per_sec
					   : limits->egress_rate_bits_per_sec,
	};

	memcpy(reading.id, info->id, sizeof(reading.id));
	copy_text(reading.name, sizeof(reading.name),
		  info->label[0] ? info->label : info->id);
	copy_text(reading.ifname, sizeof(reading.ifname), info->ifname);
	return reading;
}

static void add_reading(struct readings *readings,
			const struct top_reading *reading)
{
	readings->items = memory_grow(readings->items,
				      (readings->len + 1) * sizeof(*reading));
	readings->items[readings->len++] = *reading;
}

/* Adds the directions that have a limit. Those of an unshaped pod have the limits
 * that it should have. */
static int add_readings(void *arg, const struct natra_info *info,
			const struct natra_stats *stats)
{
	static const struct natra_stats none = {0};
	struct readings *readings = arg;
	const int wanted = readings->top->direction;

	if (info->other_abi)
		return 0;
	if (!stats)
		stats = &none;
	for (int d = 0; d < NATRA_DIRECTION_MAX; d++) {
		struct top_reading reading =
			start_reading(info, (enum natra_direction)d);

		if (!reading.limit_bits_per_sec ||
		    (wanted != NATRA_DIRECTION_MAX && wanted != d))
			continue;
		reading.bytes = d == NATRA_DIRECTION_INGRESS
					? top_counts_of(&stats->ingress,
							info->pace_active)
					: top_counts_of(&stats->egress,
							info->edt_active);
		add_reading(readings, &reading);
	}
	return 0;
}

int top_read(struct top *top)
{
	struct readings readings = {.top = top};
	int r = natra_foreach_stats(top->cli->n, add_readings, &readings);

	if (r == 0)
		top_model_update(&top->model, readings.items, readings.len,
				 clock_ns(CLOCK_MONOTONIC));
	free(readings.items);
	return r;
}

size_t top_count_flows(const struct top *top, const struct top_row *row)
{
	struct natra_flow flows[FLOWS_MAX];
	size_t len = FLOWS_MAX, count = 0;

	if (row->reading.unshaped ||
	    natra_top(top->cli->n, row->reading.id, row->reading.direction,
		      flows, &len) < 0)
		return 0;
	for (size_t i = 0; i < len; i++)
		count += flows[i].idle_ns < TOP_IDLE_NS;
	return count;
}
