/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What pods that are gone have counted. The sum of a namespace must not fall when one
 * of its pods goes, because Prometheus takes a counter that falls for one that began
 * again, and adds all of it. So each scrape leaves the next one what it has read, and
 * the first scrape of a process begins at 0, as the counters of a new process do.
 */
#ifndef NATRA_METRICS_KEPT_H
#define NATRA_METRICS_KEPT_H

#include "collect.h"

struct kept {
	char id[NATRA_ID_MAX + 1]; /* "": the sum of those that are gone */
	/* In how many scrapes it was not found, which may have been for a moment. */
	unsigned int misses;
	char namespace[NAMESPACE_MAX + 1];
	struct natra_stats stats;
};

/* After so many scrapes without it a pod is gone for good. */
#define KEPT_MISSES_MAX 4

/*
 * Set node->gone, which is added to the sums: by it each sum of the first scrape is 0, and
 * later ones are as the last scrape has left them. kept_update reads the node's times.
 * Both return what to leave for the next scrape, which the caller frees.
 */
struct kept *kept_begin(struct node_metrics *node, size_t *ret_len);
struct kept *kept_update(struct node_metrics *node, const struct kept *last,
			 size_t len, size_t *ret_len);

#endif
