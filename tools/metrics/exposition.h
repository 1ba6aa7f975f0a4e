/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes metrics in the text format of Prometheus, or in that of OpenMetrics. */
#ifndef NATRA_METRICS_EXPOSITION_H
#define NATRA_METRICS_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <natra/natra.h>

enum metric_type {
	METRIC_GAUGE,
	METRIC_COUNTER, /* its samples end in _total */
	METRIC_INFO,    /* its samples end in _info, and are 1 */
	METRIC_HISTOGRAM,
};

struct metric {
	const char *name; /* without the end that the type adds */
	enum metric_type type;
	const char *unit; /* the last words of the name; NULL: none */
	const char *help;
};

/* A label without a value is left out. */
struct label {
	const char *name;
	const char *value;
};

#define LABELS_MAX 10

struct exposition {
	FILE *out;
	bool is_openmetrics;
	const struct metric *metric;
	bool has_head; /* what the metric is has been written */
};

/* The samples that follow are of this metric. A metric without samples is not
 * written at all. */
void exposition_begin(struct exposition *e, const struct metric *metric);
/* These write a sample; the list of labels ends with one without a name. */
void exposition_count(struct exposition *e, const struct label *labels,
		      uint64_t value);
void exposition_percent(struct exposition *e, const struct label *labels,
			uint32_t percent);
void exposition_seconds(struct exposition *e, const struct label *labels,
			uint64_t ns);

/* Which buckets of a histogram have a series: each `step` from `first` to `last`.
 * Durations between two of these count in the later one, because a series counts all
 * durations up to its bound. */
struct buckets {
	size_t first, last, step;
};

/* Writes the samples of a histogram, in seconds. */
void exposition_histogram(struct exposition *e, const struct label *labels,
			  const struct natra_histogram *h,
			  const struct buckets *buckets);
/* Ends the text. */
void exposition_end(struct exposition *e);

/* Returns the value of the header Content-Type. */
const char *exposition_content_type(bool is_openmetrics);
/* Returns whether a client with this header Accept (NULL: it has none) prefers
 * OpenMetrics. */
bool exposition_accepts_openmetrics(const char *accept);

#endif
