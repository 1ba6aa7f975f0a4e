/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What pods that are gone have counted. The sum of a namespace must not fall when one
 * of its pods goes, because Prometheus takes a counter that falls for one that began
 * again, and adds all of it. So each scrape leaves the next one what it has read, and
 * the first scrape of a process begins at 0, as the counters of a new process do.
 */
#ifndef NATRA_METRICS_KEPT_H
#define NATRA_METRICS_KEPT_H

#include "../../src/util/clock.h"
#include "collect.h"

struct kept {
	char id[NATRA_ID_MAX + 1]; /* "": the sum of those that are gone */
	/* In how many scrapes it was not found, which may have been for a moment, or the
	 * namespace had no pods. */
	unsigned int misses;
	uint64_t seen_ns; /* of a sum: when it last had some */
	char namespace[NAMESPACE_MAX + 1];
	struct natra_stats stats;
};

/* After so many scrapes without it a pod is gone for good. */
#define KEPT_MISSES_MAX 4
/* Sums of namespaces without pods, which have no series, go after a day, and where there are more:
 * what pods that come later have counted then begins at 0. */
#define KEPT_IDLE_NS    (86400 * NS_PER_S)
#define KEPT_IDLE_MAX   2048

/*
 * Set node->gone, which is added to the sums: by it each sum of the first scrape is 0, and
 * later ones are as the last scrape has left them. kept_update reads the node's times.
 * Both return what to leave for the next scrape, which the caller frees.
 */
struct kept *kept_begin(struct node_metrics *node, size_t *ret_len);
struct kept *kept_update(struct node_metrics *node, const struct kept *last,
			 size_t len, size_t *ret_len);

#endif
