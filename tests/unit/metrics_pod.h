/* SPDX-License-Identifier: BSD-2-Clause */
/* A pod for the tests of metrics, and the text that is written about it. */
#ifndef METRICS_POD_H
#define METRICS_POD_H

#include "cm.h"

#include <stdio.h>

#include "collect.h"
#include "exposition.h"

struct text {
	struct exposition e;
	char *text;
	size_t len;
};

static inline void begin(struct text *t, bool is_openmetrics)
{
	*t = (struct text){.e = {.is_openmetrics = is_openmetrics}};
	t->e.out = open_memstream(&t->text, &t->len);
	assert_non_null(t->e.out);
}

static inline struct pod_metrics a_pod(const char *label, const char *id,
				       uint64_t bytes)
{
	struct pod_metrics pod = {.has_stats = true};

	(void)snprintf(pod.info.id, sizeof(pod.info.id), "%s", id);
	(void)snprintf(pod.info.ifname, sizeof(pod.info.ifname), "eth0");
	(void)split_label(label, pod.namespace, pod.pod);
	pod.info.egress_prog_id = 1;
	pod.info.edt_active = true;
	pod.info.mode = NATRA_ATTACH_MODE_TCX_PODSIDE;
	pod.info.effective.egress_rate_bits_per_sec = 8000;
	pod.stats.egress.mice.bytes = bytes;
	pod.stats.egress.paced.bytes = 10 * bytes;
	pod.stats.egress.dropped_rate.bytes = 100 * bytes;
	pod.stats.egress.dropped_horizon.bytes = 1000 * bytes;
	pod.stats.egress.other.bytes = 10000 * bytes;
	pod.stats.egress.unlimited.bytes = 100000 * bytes;
	pod.stats.egress_delays.count[10] = bytes;
	if (pod.pod[0])
		pod.info.policy.sli = NATRA_SLI_ON;
	pod.stats.egress_connects.accepted.count[12] = bytes;
	pod.stats.egress_connects.begun = 2 * bytes;
	pod.stats.egress_connects.repeated = 3 * bytes;
	pod.stats.egress_connects.refused = 4 * bytes;
	pod.stats.egress_connects.forgotten = 5 * bytes;
	return pod;
}

#endif
