/* SPDX-License-Identifier: BSD-2-Clause */
#include "counters.h"

static const size_t offsets[VERDICTS] = {
	offsetof(struct natra_direction_stats, mice),
	offsetof(struct natra_direction_stats, admitted),
	offsetof(struct natra_direction_stats, paced),
	offsetof(struct natra_direction_stats, marked),
	offsetof(struct natra_direction_stats, dropped_rate),
	offsetof(struct natra_direction_stats, dropped_horizon),
	offsetof(struct natra_direction_stats, unlimited),
	offsetof(struct natra_direction_stats, other),
};

const struct natra_count *
verdict_count(const struct natra_direction_stats *stats, size_t verdict)
{
	return (const void *)((const char *)stats + offsets[verdict]);
}

uint64_t bytes_of_bits(uint64_t bits)
{
	return bits / 8 + (bits % 8 != 0);
}

/* These add the counters `times` times, which is 1, or -1 modulo 2^64. */
static void count(struct natra_count *sum, const struct natra_count *c,
		  uint64_t times)
{
	sum->packets += times * c->packets;
	sum->bytes += times * c->bytes;
}

static void direction(struct natra_direction_stats *sum,
		      const struct natra_direction_stats *stats, uint64_t times)
{
	for (size_t i = 0; i < VERDICTS; i++)
		count((void *)((char *)sum + offsets[i]),
		      verdict_count(stats, i), times);
	count(&sum->over_packets, &stats->over_packets, times);
	count(&sum->over_connections, &stats->over_connections, times);
	sum->delay_sum_ns += times * stats->delay_sum_ns;
	sum->events_reported += times * stats->events_reported;
	sum->events_suppressed += times * stats->events_suppressed;
}

static void histogram(struct natra_histogram *sum,
		      const struct natra_histogram *h, uint64_t times)
{
	sum->sum_ns += times * h->sum_ns;
	for (size_t i = 0; i < NATRA_HISTOGRAM_BUCKETS; i++)
		sum->count[i] += times * h->count[i];
}

static void connects(struct natra_connect_stats *sum,
		     const struct natra_connect_stats *c, uint64_t times)
{
	sum->begun += times * c->begun;
	sum->repeated += times * c->repeated;
	sum->refused += times * c->refused;
	sum->forgotten += times * c->forgotten;
	histogram(&sum->accepted, &c->accepted, times);
}

static void all(struct natra_stats *sum, const struct natra_stats *stats,
		uint64_t times)
{
	direction(&sum->ingress, &stats->ingress, times);
	direction(&sum->egress, &stats->egress, times);
	direction(&sum->backstop, &stats->backstop, times);
	histogram(&sum->ingress_delays, &stats->ingress_delays, times);
	histogram(&sum->egress_delays, &stats->egress_delays, times);
	connects(&sum->ingress_connects, &stats->ingress_connects, times);
	connects(&sum->egress_connects, &stats->egress_connects, times);
	sum->ingress_heavy_flows +=
		(uint32_t)times * stats->ingress_heavy_flows;
	sum->egress_heavy_flows += (uint32_t)times * stats->egress_heavy_flows;
}

void add_stats(struct natra_direction_stats *sum,
	       const struct natra_direction_stats *stats)
{
	direction(sum, stats, 1);
}

void add_histogram(struct natra_histogram *sum, const struct natra_histogram *h)
{
	histogram(sum, h, 1);
}

void add_connects(struct natra_connect_stats *sum,
		  const struct natra_connect_stats *c)
{
	connects(sum, c, 1);
}

void add_all_stats(struct natra_stats *sum, const struct natra_stats *stats)
{
	all(sum, stats, 1);
}

void subtract_all_stats(struct natra_stats *sum,
			const struct natra_stats *stats)
{
	all(sum, stats, UINT64_MAX);
}
