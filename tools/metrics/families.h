/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics of a node by their names, which tools/deploy/monitoring queries. */
#ifndef NATRA_METRICS_FAMILIES_H
#define NATRA_METRICS_FAMILIES_H

#include "collect.h"
#include "exposition.h"

struct families_options {
	bool is_basic;     /* five verdicts in place of eight */
	bool by_namespace; /* sums in place of pods */
};

/* Both read the value of an option and return false if it is none. */
bool families_read_verdicts(struct families_options *o, const char *value);
bool families_read_aggregate(struct families_options *o, const char *value);

/* Writes all metrics of the attachments and of the kernel. */
void families_write(struct exposition *e, const struct node_metrics *node,
		    const struct families_options *o);

#endif
