/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the library for what `natractl top` shows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/util/clock.h"
#include "../common/memory.h"
#include "../common/flows.h"
#include "info.h"
#include "top.h"

struct readings {
	const struct top *top;
	struct top_reading *items;
	size_t len;
	struct natra_info *classed; /* attachments with classes */
	size_t classed_len;
};

static struct top_reading start_reading(const struct natra_info *info,
					enum natra_direction direction)
{
	const bool into = direction == NATRA_DIRECTION_INGRESS;
	const struct natra_policy *limits = &info->effective;
	struct top_reading reading = {
		.of = {.kind = TOP_POD, .direction = direction},
		.unshaped = info->unshaped,
		.limit_bits_per_sec = into ? limits->ingress_rate_bits_per_sec
					   : limits->egress_rate_bits_per_sec,
	};

	memcpy(reading.of.id, info->id, sizeof(reading.of.id));
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

static struct traffic counts_of(const struct natra_info *info,
				const struct natra_stats *stats, int d)
{
	return d == NATRA_DIRECTION_INGRESS
		       ? traffic_of(&stats->ingress, info->pace_active)
		       : traffic_of(&stats->egress, info->edt_active);
}

static void add_classed(struct readings *readings,
			const struct natra_info *info)
{
	readings->classed = memory_grow(
		readings->classed, (readings->classed_len + 1) * sizeof(*info));
	readings->classed[readings->classed_len++] = *info;
}

/* The attachment of a class. */
struct class_of {
	struct readings *readings;
	const struct natra_info *info;
};

static int add_class(void *arg, const struct natra_class *class,
		     const struct natra_stats *stats)
{
	const struct class_of *of = arg;
	const int wanted = of->readings->top->direction;

	for (int d = 0; d < NATRA_DIRECTION_MAX; d++) {
		struct top_reading reading =
			start_reading(of->info, (enum natra_direction)d);
		const size_t len = strlen(reading.name);

		reading.limit_bits_per_sec =
			d == NATRA_DIRECTION_INGRESS
				? class->ingress_rate_bits_per_sec
				: class->egress_rate_bits_per_sec;
		if (!reading.limit_bits_per_sec ||
		    (wanted != NATRA_DIRECTION_MAX && wanted != d))
			continue;
		reading.of.kind = TOP_CLASS;
		(void)snprintf(reading.of.part, sizeof(reading.of.part), "%s",
			       class->name);
		(void)snprintf(reading.name + len, sizeof(reading.name) - len,
			       " class %s", class->name);
		reading.bytes = counts_of(of->info, stats, d);
		add_reading(of->readings, &reading);
	}
	return 0;
}

/* An automatic group may have the name of another one. */
static int add_group(void *arg, const struct natra_group_info *group)
{
	struct readings *readings = arg;
	const int wanted = readings->top->direction;

	for (int d = 0; d < NATRA_DIRECTION_MAX; d++) {
		const bool into = d == NATRA_DIRECTION_INGRESS;
		struct top_reading reading = {
			.of = {.kind = group->automatic ? TOP_AUTOMATIC
							: TOP_GROUP,
			       .direction = (enum natra_direction)d},
			.limit_bits_per_sec =
				into ? group->ingress_rate_bits_per_sec
				     : group->egress_rate_bits_per_sec,
			.bytes = traffic_of_group(group,
						  (enum natra_direction)d),
		};

		if (!reading.limit_bits_per_sec ||
		    (wanted != NATRA_DIRECTION_MAX && wanted != d))
			continue;
		(void)snprintf(reading.of.part, sizeof(reading.of.part), "%s",
			       group->name);
		(void)snprintf(reading.name, sizeof(reading.name), "%s",
			       group->automatic ? "automatic group "
						: "group ");
		copy_text(reading.name + strlen(reading.name),
			  sizeof(reading.name) - strlen(reading.name),
			  group->name);
		add_reading(readings, &reading);
	}
	return 0;
}

/* Adds the directions that have a limit. Those of an unshaped pod have the limits
 * that it should have. */
static int add_readings(void *arg, const struct natra_info *info,
			const struct natra_stats *stats)
{
	static const struct natra_stats none = {0};
	struct readings *readings = arg;
	const int wanted = readings->top->direction;

	if (info->other_abi || (!stats && !info->unshaped))
		return 0;
	if (!stats)
		stats = &none;
	for (int d = 0; d < NATRA_DIRECTION_MAX; d++) {
		struct top_reading reading =
			start_reading(info, (enum natra_direction)d);

		if (!reading.limit_bits_per_sec ||
		    (wanted != NATRA_DIRECTION_MAX && wanted != d))
			continue;
		reading.bytes = counts_of(info, stats, d);
		add_reading(readings, &reading);
	}
	if (info->policy.classes_len && !info->unshaped)
		add_classed(readings, info);
	return 0;
}

/* An attachment that has gone meanwhile has no classes. */
static int read_classes(struct readings *readings,
			const struct natra_info *info)
{
	struct class_of of = {readings, info};
	int r = natra_foreach_class_stats(readings->top->cli->n, info->id,
					  add_class, &of);

	return r == -ENOENT ? 0 : r;
}

int top_read(struct top *top)
{
	struct readings readings = {.top = top};
	int r = natra_foreach_stats(top->cli->n, add_readings, &readings);

	for (size_t i = 0; i < readings.classed_len && r == 0; i++)
		r = read_classes(&readings, &readings.classed[i]);
	if (r == 0)
		r = natra_foreach_group(top->cli->n, add_group, &readings);
	/* Something else is pinned in the place of the groups. */
	if (r == -ESTALE)
		r = 0;
	if (r == 0)
		top_model_update(&top->model, readings.items, readings.len,
				 clock_ns(CLOCK_MONOTONIC));
	free(readings.classed);
	free(readings.items);
	return r;
}

size_t top_count_flows(const struct top *top, const struct top_row *row)
{
	struct natra_flow flows[NATRA_FLOWS_MAX];
	size_t len = NATRA_FLOWS_MAX, count = 0;

	if (row->reading.unshaped || row->reading.of.kind != TOP_POD ||
	    natra_top(top->cli->n, row->reading.of.id,
		      row->reading.of.direction, flows, &len) < 0)
		return 0;
	for (size_t i = 0; i < len; i++)
		count += flows[i].idle_ns < TOP_IDLE_NS;
	return count;
}
