/* SPDX-License-Identifier: BSD-2-Clause */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#include "../common/memory.h"
#include "kept.h"

static struct row_direction ingress_of(const struct pod_metrics *pod,
				       const struct natra_stats *stats)
{
	const struct natra_info *info = &pod->info;

	return (struct row_direction){
		.is_there = info->ingress_prog_id || info->host_prog_id,
		.stats = stats->ingress,
		.is_held = info->pace_active,
		.delays = stats->ingress_delays,
		.is_measured = info->policy.sli == NATRA_SLI_ON &&
			       (info->ingress_prog_id || info->host_prog_id),
		.connects = stats->ingress_connects,
		.bytes_per_sec = bytes_of_bits(
			info->effective.ingress_rate_bits_per_sec),
		.burst_bytes =
			bytes_of_bits(info->effective.ingress_burst_bits),
		.heavy_flows = stats->ingress_heavy_flows,
		.bypassed_percent = info->ingress_bypassed_percent,
	};
}

static struct row_direction egress_of(const struct pod_metrics *pod,
				      const struct natra_stats *stats)
{
	const struct natra_info *info = &pod->info;

	return (struct row_direction){
		.is_there = info->egress_prog_id,
		.stats = stats->egress,
		.is_held = info->edt_active,
		.delays = stats->egress_delays,
		.is_measured = info->policy.sli == NATRA_SLI_ON &&
			       info->egress_prog_id,
		.connects = stats->egress_connects,
		.bytes_per_sec =
			bytes_of_bits(info->effective.egress_rate_bits_per_sec),
		.burst_bytes = bytes_of_bits(info->effective.egress_burst_bits),
		.heavy_flows = stats->egress_heavy_flows,
		.bypassed_percent = info->egress_bypassed_percent,
	};
}

static struct row row_of(const struct pod_metrics *pod)
{
	bool has_pod = pod->pod[0];
	struct row row = {
		.namespace = has_pod ? pod->namespace : NULL,
		.pod = has_pod ? pod->pod : NULL,
		.interface = pod->info.ifname,
		/* Two series must not have the same labels. */
		.attachment = has_pod && !pod->is_again ? NULL : pod->info.id,
		.info = &pod->info,
		.is_inspected = pod->is_inspected,
		.unshaped = pod->info.unshaped,
		.check_failed = pod->check_failed,
		.program_before = pod->program_before,
	};

	if (!pod->has_stats)
		return row;
	row.directions[NATRA_DIRECTION_INGRESS] = ingress_of(pod, &pod->stats);
	row.directions[NATRA_DIRECTION_EGRESS] = egress_of(pod, &pod->stats);
	row.has_backstop = pod->info.host_prog_id && pod->info.ingress_prog_id;
	row.backstop = pod->stats.backstop;
	return row;
}

/* Returns the row of one class, or of the peers that are in none. Only that one has what
 * is known of the whole attachment. */
static struct row row_of_class(const struct pod_metrics *pod,
			       const struct class_metrics *class)
{
	struct row row = row_of(pod);
	struct row_direction *in = &row.directions[NATRA_DIRECTION_INGRESS];
	struct row_direction *out = &row.directions[NATRA_DIRECTION_EGRESS];

	*in = ingress_of(pod, &class->stats);
	*out = egress_of(pod, &class->stats);
	row.backstop = class->stats.backstop;
	if (!class->name[0])
		return row;
	row.class = class->name;
	in->bytes_per_sec = class->ingress_bytes_per_sec;
	out->bytes_per_sec = class->egress_bytes_per_sec;
	in->burst_bytes = out->burst_bytes = 0;
	return row;
}

static void add_direction(struct row_direction *sum,
			  const struct row_direction *direction)
{
	sum->is_there |= direction->is_there;
	add_stats(&sum->stats, &direction->stats);
	sum->is_held |= direction->is_held;
	add_histogram(&sum->delays, &direction->delays);
	sum->is_measured |= direction->is_measured;
	add_connects(&sum->connects, &direction->connects);
	sum->bytes_per_sec += direction->bytes_per_sec;
	sum->burst_bytes += direction->burst_bytes;
	sum->heavy_flows += direction->heavy_flows;
	if (sum->bypassed_percent < direction->bypassed_percent)
		sum->bypassed_percent = direction->bypassed_percent;
}

static void add_row(struct row *sum, const struct row *row)
{
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++)
		add_direction(&sum->directions[i], &row->directions[i]);
	sum->has_backstop |= row->has_backstop;
	add_stats(&sum->backstop, &row->backstop);
	sum->is_inspected |= row->is_inspected;
	sum->unshaped += row->unshaped;
	sum->check_failed += row->check_failed;
	sum->program_before += row->program_before;
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Adds what the pods of a namespace had counted that are gone. */
static void add_gone(struct row *row, const struct node_metrics *node)
{
	struct row_direction *in = &row->directions[NATRA_DIRECTION_INGRESS];
	struct row_direction *out = &row->directions[NATRA_DIRECTION_EGRESS];

	for (size_t i = 0; i < node->gone_len; i++) {
		const struct kept *gone = &node->gone[i];

		if (strcmp(gone->namespace,
			   row->namespace ? row->namespace : "") != 0)
			continue;
		add_stats(&in->stats, &gone->stats.ingress);
		add_stats(&out->stats, &gone->stats.egress);
		add_histogram(&in->delays, &gone->stats.ingress_delays);
		add_histogram(&out->delays, &gone->stats.egress_delays);
		add_connects(&in->connects, &gone->stats.ingress_connects);
		add_connects(&out->connects, &gone->stats.egress_connects);
		add_stats(&row->backstop, &gone->stats.backstop);
	}
}

static size_t count_rows(const struct node_metrics *node)
{
	size_t count = node->len;

	for (size_t i = 0; i < node->len; i++)
		count += node->list[i].classes_len;
	return count;
}

/* The pod's counters have all classes, so its limits must, too. The first one is the rest, whose
 * limits are the pod's. */
static void add_limits(struct row *row, const struct pod_metrics *pod)
{
	for (size_t i = 1; i < pod->classes_len; i++) {
		const struct class_metrics *class = &pod->classes[i];

		row->directions[NATRA_DIRECTION_INGRESS].bytes_per_sec +=
			class->ingress_bytes_per_sec;
		row->directions[NATRA_DIRECTION_EGRESS].bytes_per_sec +=
			class->egress_bytes_per_sec;
	}
}

struct rows rows_make(const struct node_metrics *node, bool by_namespace)
{
	struct rows rows = {
		.list = memory_new(count_rows(node) * sizeof(*rows.list)),
	};

	for (size_t i = 0; i < node->len; i++) {
		const struct pod_metrics *pod = &node->list[i];
		struct row row = row_of(pod);

		if (!by_namespace && pod->classes_len) {
			for (size_t j = 0; j < pod->classes_len; j++)
				rows.list[rows.len++] =
					row_of_class(pod, &pod->classes[j]);
			continue;
		}
		if (by_namespace) {
			row.pod = row.interface = row.attachment = NULL;
			row.info = NULL;
			add_limits(&row, pod);
		}
		if (by_namespace && rows.len &&
		    is_same(rows.list[rows.len - 1].namespace, row.namespace))
			add_row(&rows.list[rows.len - 1], &row);
		else
			rows.list[rows.len++] = row;
	}
	for (size_t i = 0; i < rows.len && by_namespace; i++)
		add_gone(&rows.list[i], node);
	return rows;
}

void rows_free(struct rows *rows)
{
	free(rows->list);
	*rows = (struct rows){0};
}
