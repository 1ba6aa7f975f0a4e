/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of attachments, and sums of them. */
#ifndef NATRA_METRICS_COUNTERS_H
#define NATRA_METRICS_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include <natra/natra.h>

/* The eight counters of a direction, by number. */
#define VERDICTS 8
const struct natra_count *
verdict_count(const struct natra_direction_stats *stats, size_t verdict);

/* Rounds up: a limit of a few bits is one, and 0 stands for none. */
uint64_t bytes_of_bits(uint64_t bits);

/* Add all counters to `sum`, or take them off, below 0 modulo 2^64. */
void add_stats(struct natra_direction_stats *sum,
	       const struct natra_direction_stats *stats);
void add_histogram(struct natra_histogram *sum,
		   const struct natra_histogram *h);
void add_connects(struct natra_connect_stats *sum,
		  const struct natra_connect_stats *c);
void add_all_stats(struct natra_stats *sum, const struct natra_stats *stats);
void subtract_all_stats(struct natra_stats *sum,
			const struct natra_stats *stats);

#endif
