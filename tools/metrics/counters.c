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

static void add_count(struct natra_count *sum, const struct natra_count *count)
{
	sum->packets += count->packets;
	sum->bytes += count->bytes;
}

static void subtract_count(struct natra_count *sum,
			   const struct natra_count *count)
{
	sum->packets -= count->packets;
	sum->bytes -= count->bytes;
}

void add_stats(struct natra_direction_stats *sum,
	       const struct natra_direction_stats *stats)
{
	for (size_t i = 0; i < VERDICTS; i++) {
		struct natra_count *to = (void *)((char *)sum + offsets[i]);

		add_count(to, verdict_count(stats, i));
	}
	add_count(&sum->over_packets, &stats->over_packets);
	add_count(&sum->over_connections, &stats->over_connections);
	sum->delay_ns_sum += stats->delay_ns_sum;
	sum->events_reported += stats->events_reported;
	sum->events_suppressed += stats->events_suppressed;
}

void subtract_stats(struct natra_direction_stats *sum,
		    const struct natra_direction_stats *stats)
{
	for (size_t i = 0; i < VERDICTS; i++) {
		struct natra_count *from = (void *)((char *)sum + offsets[i]);

		subtract_count(from, verdict_count(stats, i));
	}
	subtract_count(&sum->over_packets, &stats->over_packets);
	subtract_count(&sum->over_connections, &stats->over_connections);
	sum->delay_ns_sum -= stats->delay_ns_sum;
	sum->events_reported -= stats->events_reported;
	sum->events_suppressed -= stats->events_suppressed;
}

void add_histogram(struct natra_histogram *sum, const struct natra_histogram *h)
{
	sum->sum_ns += h->sum_ns;
	for (size_t i = 0; i < NATRA_HISTOGRAM_BUCKETS; i++)
		sum->count[i] += h->count[i];
}

void subtract_histogram(struct natra_histogram *from,
			const struct natra_histogram *less)
{
	from->sum_ns -= less->sum_ns;
	for (size_t i = 0; i < NATRA_HISTOGRAM_BUCKETS; i++)
		from->count[i] -= less->count[i];
}

void add_connects(struct natra_connect_stats *sum,
		  const struct natra_connect_stats *c)
{
	sum->begun += c->begun;
	sum->repeated += c->repeated;
	sum->refused += c->refused;
	sum->forgotten += c->forgotten;
	add_histogram(&sum->accepted, &c->accepted);
}

void subtract_connects(struct natra_connect_stats *from,
		       const struct natra_connect_stats *less)
{
	from->begun -= less->begun;
	from->repeated -= less->repeated;
	from->refused -= less->refused;
	from->forgotten -= less->forgotten;
	subtract_histogram(&from->accepted, &less->accepted);
}

void add_all_stats(struct natra_stats *sum, const struct natra_stats *stats)
{
	add_stats(&sum->ingress, &stats->ingress);
	add_stats(&sum->egress, &stats->egress);
	add_stats(&sum->backstop, &stats->backstop);
	add_histogram(&sum->ingress_delays, &stats->ingress_delays);
	add_histogram(&sum->egress_delays, &stats->egress_delays);
	add_connects(&sum->ingress_connects, &stats->ingress_connects);
	add_connects(&sum->egress_connects, &stats->egress_connects);
	sum->ingress_heavy_flows += stats->ingress_heavy_flows;
	sum->egress_heavy_flows += stats->egress_heavy_flows;
}
