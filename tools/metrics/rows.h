/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows from which the series of a pod, or of a namespace, are written. */
#ifndef NATRA_METRICS_ROWS_H
#define NATRA_METRICS_ROWS_H

#include "collect.h"
#include "counters.h"

struct row_direction {
	bool is_there; /* packets of this direction are counted */
	struct natra_direction_stats stats;
	bool is_held; /* a packet of it can be given a delay */
	struct natra_histogram delays;
	bool is_measured; /* connections are */
	struct natra_connect_stats connects;
	/* They are 0 if there is no limit. */
	uint64_t bytes_per_sec, burst_bytes;
	uint64_t heavy_flows;
	uint32_t bypassed_percent; /* the highest of the attachments */
};

struct row {
	/* NULL: the series have no such label. */
	const char *namespace, *pod, *interface, *attachment;
	/* NULL: the peers that are in no class, or all of them. */
	const char *class;
	/* NULL: it stands for several attachments. */
	const struct natra_info *info;
	struct row_direction directions[NATRA_DIRECTION_MAX];
	bool has_backstop;
	struct natra_direction_stats backstop;
	bool is_inspected;
	/* How many attachments they are. */
	uint64_t unshaped, check_failed, program_before;
};

struct rows {
	struct row *list;
	size_t len;
};

/* Makes a row of each attachment, or of each namespace, which points into *node. */
struct rows rows_make(const struct node_metrics *node, bool by_namespace);
void rows_free(struct rows *rows);

#endif
