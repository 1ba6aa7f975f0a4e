/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What pods that are gone have counted. The sum of a namespace must not fall when one
 * of its pods goes, because Prometheus takes a counter that falls for one that began
 * again. So each scrape leaves the next one what it has read.
 */
#ifndef NATRA_METRICS_KEPT_H
#define NATRA_METRICS_KEPT_H

#include "collect.h"

struct kept {
	char id[NATRA_ID_MAX + 1]; /* "": the sum of those that are gone */
	char namespace[NAMESPACE_MAX + 1];
	struct natra_direction_stats ingress, egress, backstop;
};

/* Sets node->gone by what the last scrape has left, and returns in *ret_list what to
 * leave for the next one; the caller frees it. Returns 0 or -ENOMEM. */
int kept_update(struct node_metrics *node, const struct kept *last, size_t len,
		struct kept **ret_list, size_t *ret_len);

/* Adds all counters of `stats` to `sum`. */
void add_stats(struct natra_direction_stats *sum,
	       const struct natra_direction_stats *stats);

#endif
