/* SPDX-License-Identifier: BSD-2-Clause */
#include "stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/util/clock.h"
#include "../common/memory.h"
#include "info.h"
#include "output.h"

void sample_list_free(struct sample_list *list)
{
	for (size_t i = 0; i < list->len; i++)
		free(list->items[i].classes);
	free(list->items);
	*list = (struct sample_list){0};
}

/* Reads the attachment that was asked for, or all of them. */
static int read_infos(const struct cli *cli, struct info_list *ret_list)
{
	struct natra_info info = NATRA_INIT(info);
	int r;

	if (!cli->opts.arg)
		return info_list_read(cli->n, ret_list);
	r = natra_query(cli->n, cli->opts.arg, &info);
	if (r < 0)
		return r;
	ret_list->items = memory_new(sizeof(info));
	ret_list->items[0] = info;
	ret_list->len = 1;
	return 0;
}

static int add_class(void *arg, const struct natra_class *class,
		     const struct natra_stats *stats)
{
	struct sample *sample = arg;
	struct class_sample *list = memory_grow(
		sample->classes, (sample->classes_len + 1) * sizeof(*list));
	struct class_sample *made;

	sample->classes = list;
	made = &list[sample->classes_len++];
	*made = (struct class_sample){.stats = *stats};
	(void)snprintf(made->name, sizeof(made->name), "%s", class->name);
	return 0;
}

const struct natra_stats *sample_class(const struct sample *sample,
				       const char *name)
{
	for (size_t i = 0; i < sample->classes_len; i++) {
		if (strcmp(sample->classes[i].name, name) == 0)
			return &sample->classes[i].stats;
	}
	return NULL;
}

struct sample sample_of(const struct natra_info *info,
			const struct natra_stats *stats)
{
	struct sample sample = {
		.has_backstop = info->host_prog_id && info->ingress_prog_id,
		.has_sli = info->policy.sli == NATRA_SLI_ON,
		.taken_ns = clock_ns(CLOCK_MONOTONIC),
		.stats = *stats,
	};

	memcpy(sample.id, info->id, sizeof(sample.id));
	return sample;
}

static int read_sample(struct natra *n, const struct natra_info *info,
		       struct sample *ret_sample)
{
	struct natra_stats stats = NATRA_INIT(stats);
	int r = natra_stats(n, info->id, &stats);
	struct sample sample = sample_of(info, &stats);

	if (r == 0 && info->policy.classes_len)
		r = natra_foreach_class_stats(n, info->id, add_class, &sample);
	if (r < 0) {
		free(sample.classes);
		return r;
	}
	*ret_sample = sample;
	return 0;
}

int sample_list_read(const struct cli *cli, struct sample_list *ret_list)
{
	struct info_list infos = {0};
	struct sample_list list = {0};
	int r;

	r = read_infos(cli, &infos);
	if (r < 0)
		return r;
	list.items = memory_new(infos.len * sizeof(*list.items));
	for (size_t i = 0; i < infos.len && r == 0; i++) {
		if (infos.items[i].other_abi && !cli->opts.arg)
			continue;
		r = read_sample(cli->n, &infos.items[i], &list.items[list.len]);
		if (r == 0) {
			list.len++;
		} else if (r == -ENOENT && !cli->opts.arg) {
			/* Unless it was detached since it was listed, its counters are gone. */
			if (natra_error_code(cli->n) != NATRA_CODE_NOT_ATTACHED)
				list.exit_code = failure(cli, r);
			r = 0;
		}
	}
	info_list_free(&infos);
	if (r < 0)
		sample_list_free(&list);
	else
		*ret_list = list;
	return r;
}

const struct sample *sample_list_find(const struct sample_list *list,
				      const char *id)
{
	for (size_t i = 0; i < list->len; i++) {
		if (strcmp(list->items[i].id, id) == 0)
			return &list->items[i];
	}
	return NULL;
}

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
	{"mice", offsetof(struct natra_direction_stats, mice)},
	{"admitted", offsetof(struct natra_direction_stats, admitted)},
	{"paced", offsetof(struct natra_direction_stats, paced)},
	{"marked", offsetof(struct natra_direction_stats, marked)},
	{"dropped_rate", offsetof(struct natra_direction_stats, dropped_rate)},
	{"dropped_horizon",
	 offsetof(struct natra_direction_stats, dropped_horizon)},
	{"unlimited", offsetof(struct natra_direction_stats, unlimited)},
	{"other", offsetof(struct natra_direction_stats, other)},
};

static const size_t counters_len = sizeof(counters) / sizeof(counters[0]);

static const struct natra_count *
counter(const struct natra_direction_stats *stats, size_t i)
{
	return (const void *)((const char *)stats + counters[i].offset);
}

static uint64_t grown(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

static struct natra_count count_between(const struct natra_count *before,
					const struct natra_count *now)
{
	return (struct natra_count){
		.packets = grown(before->packets, now->packets),
		.bytes = grown(before->bytes, now->bytes),
	};
}

static struct natra_direction_stats
between(const struct natra_direction_stats *before,
	const struct natra_direction_stats *now)
{
	struct natra_direction_stats delta = {
		.over_packets = count_between(&before->over_packets,
					      &now->over_packets),
		.over_connections = count_between(&before->over_connections,
						  &now->over_connections),
		.delay_sum_ns = grown(before->delay_sum_ns, now->delay_sum_ns),
		.events_reported =
			grown(before->events_reported, now->events_reported),
		.events_suppressed = grown(before->events_suppressed,
					   now->events_suppressed),
		.over_limit_time_ns = now->over_limit_time_ns,
		.over_limit_percent = now->over_limit_percent,
	};

	for (size_t i = 0; i < counters_len; i++) {
		struct natra_count *d =
			(void *)((char *)&delta + counters[i].offset);

		*d = count_between(counter(before, i), counter(now, i));
	}
	return delta;
}

static struct natra_histogram
histogram_between(const struct natra_histogram *before,
		  const struct natra_histogram *now)
{
	struct natra_histogram delta = {
		.sum_ns = grown(before->sum_ns, now->sum_ns),
	};

	for (size_t i = 0; i < NATRA_HISTOGRAM_BUCKETS; i++)
		delta.count[i] = grown(before->count[i], now->count[i]);
	return delta;
}

static struct natra_connect_stats
connects_between(const struct natra_connect_stats *before,
		 const struct natra_connect_stats *now)
{
	return (struct natra_connect_stats){
		.begun = grown(before->begun, now->begun),
		.repeated = grown(before->repeated, now->repeated),
		.refused = grown(before->refused, now->refused),
		.forgotten = grown(before->forgotten, now->forgotten),
		.accepted =
			histogram_between(&before->accepted, &now->accepted),
	};
}

struct natra_stats stats_between(const struct natra_stats *before,
				 const struct natra_stats *now)
{
	return (struct natra_stats){
		.sz = sizeof(struct natra_stats),
		.ingress = between(&before->ingress, &now->ingress),
		.egress = between(&before->egress, &now->egress),
		.backstop = between(&before->backstop, &now->backstop),
		.ingress_delays = histogram_between(&before->ingress_delays,
						    &now->ingress_delays),
		.egress_delays = histogram_between(&before->egress_delays,
						   &now->egress_delays),
		.ingress_connects = connects_between(&before->ingress_connects,
						     &now->ingress_connects),
		.egress_connects = connects_between(&before->egress_connects,
						    &now->egress_connects),
		.ingress_heavy_flows = now->ingress_heavy_flows,
		.egress_heavy_flows = now->egress_heavy_flows,
	};
}

/* Returns all that was offered: each packet is in exactly one counter. */
static struct natra_count offered(const struct natra_direction_stats *stats)
{
	struct natra_count sum = {0};

	for (size_t i = 0; i < counters_len; i++) {
		sum.packets += counter(stats, i)->packets;
		sum.bytes += counter(stats, i)->bytes;
	}
	return sum;
}

static uint64_t histogram_count(const struct natra_histogram *h)
{
	uint64_t count = 0;

	for (size_t i = 0; i < NATRA_HISTOGRAM_BUCKETS; i++)
		count += h->count[i];
	return count;
}

/* Returns the mean delay of the packets that got a departure time. With ingress
 * pacing a marked packet has got one, too. */
static uint64_t mean_delay_ns(const struct natra_direction_stats *stats)
{
	uint64_t packets = stats->paced.packets + stats->marked.packets;

	return packets ? stats->delay_sum_ns / packets : 0;
}

static void print_count(const char *name, struct natra_count count)
{
	printf("    %-16s %14" PRIu64 " packets  %18" PRIu64 " bytes  %s\n",
	       name, count.packets, count.bytes, unit_size(count.bytes).text);
}

/* Prints a counter of what only some attachments have. */
static void print_some(const char *name, struct natra_count count)
{
	if (count.packets)
		print_count(name, count);
}

/* Prints how long the shortest so many percent of the durations are at most. */
static void print_part(const struct natra_histogram *h, uint64_t all,
		       unsigned int percent)
{
	const size_t last = NATRA_HISTOGRAM_BUCKETS - 1;
	uint64_t count = h->count[0];
	size_t i = 0;

	while (i < last && count * 100 < all * percent)
		count += h->count[++i];
	printf("  %u %% %s %s", percent, i < last ? "up to" : "over",
	       unit_time(NATRA_HISTOGRAM_UP_TO(i < last ? i : last - 1)).text);
}

static void print_histogram(const char *name, const struct natra_histogram *h)
{
	uint64_t all = histogram_count(h);

	if (!all)
		return;
	printf("    %-16s", name);
	print_part(h, all, 50);
	print_part(h, all, 90);
	print_part(h, all, 99);
	putchar('\n');
}

static void print_connects(const struct natra_connect_stats *c)
{
	printf("    %-16s %14" PRIu64 " begun    %18" PRIu64
	       " accepted  %" PRIu64 " refused  %" PRIu64
	       " SYNs again  %" PRIu64 " forgotten\n",
	       "connections", c->begun, histogram_count(&c->accepted),
	       c->refused, c->repeated, c->forgotten);
	print_histogram("accepted in", &c->accepted);
}

/* The backstop has no delays, and connections are NULL unless they are measured. */
static void print_direction(const char *name,
			    const struct natra_direction_stats *stats,
			    const struct natra_histogram *delays,
			    const struct natra_connect_stats *connects)
{
	printf("  %s\n", name);
	print_count("offered", offered(stats));
	for (size_t i = 0; i < counters_len; i++)
		print_count(counters[i].name, *counter(stats, i));
	print_some("over packets/s", stats->over_packets);
	print_some("over connects/s", stats->over_connections);
	printf("    %-16s %14s\n", "mean delay",
	       unit_time(mean_delay_ns(stats)).text);
	if (delays)
		print_histogram("delays", delays);
	printf("    %-16s %14" PRIu64 " reported %18" PRIu64 " suppressed\n",
	       "events", stats->events_reported, stats->events_suppressed);
	if (connects)
		print_connects(connects);
}

static void print_directions(const struct sample *sample,
			     const struct natra_stats *stats)
{
	print_direction("ingress", &stats->ingress, &stats->ingress_delays,
			sample->has_sli ? &stats->ingress_connects : NULL);
	if (sample->has_backstop)
		print_direction("backstop", &stats->backstop, NULL, NULL);
	print_direction("egress", &stats->egress, &stats->egress_delays,
			sample->has_sli ? &stats->egress_connects : NULL);
}

void stats_print(const struct sample *sample)
{
	print_text(stdout, sample->id, 0);
	putchar('\n');
	print_directions(sample, &sample->stats);
	for (size_t i = 0; i < sample->classes_len; i++) {
		print_text(stdout, sample->id, 0);
		printf(", class %s\n", sample->classes[i].name);
		print_directions(sample, &sample->classes[i].stats);
	}
}

void stats_print_rates_header(int id_width)
{
	static const char *const names[] = {"OFFERED", "MICE",   "ADMITTED",
					    "PACED",   "MARKED", "DROPPED"};

	printf("%-*s  %-9s", id_width, "ID", "DIRECTION");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("  %12s", names[i]);
	printf("  %9s\n", "DELAY");
}

static void print_rate(uint64_t bytes, uint64_t interval_ns)
{
	double bits_per_sec = (double)bytes * 8e9 / (double)interval_ns;

	printf("  %12s", unit_rate((uint64_t)bits_per_sec).text);
}

static void print_direction_rates(const char *name,
				  const struct natra_direction_stats *stats,
				  uint64_t interval_ns)
{
	printf("%-9s", name);
	print_rate(offered(stats).bytes, interval_ns);
	print_rate(stats->mice.bytes, interval_ns);
	print_rate(stats->admitted.bytes, interval_ns);
	print_rate(stats->paced.bytes, interval_ns);
	print_rate(stats->marked.bytes, interval_ns);
	print_rate(stats->dropped_rate.bytes + stats->dropped_horizon.bytes,
		   interval_ns);
	printf("  %9s\n", unit_time(mean_delay_ns(stats)).text);
}

void stats_print_rates(const struct sample *delta, uint64_t interval_ns,
		       int id_width)
{
	print_text(stdout, delta->id, id_width + 2);
	print_direction_rates("ingress", &delta->stats.ingress, interval_ns);
	print_text(stdout, delta->id, id_width + 2);
	print_direction_rates("egress", &delta->stats.egress, interval_ns);
	for (size_t i = 0; i < delta->classes_len; i++) {
		const struct class_sample *class = &delta->classes[i];

		printf("/%-*s", id_width + 1, class->name);
		print_direction_rates("ingress", &class->stats.ingress,
				      interval_ns);
		printf("/%-*s", id_width + 1, class->name);
		print_direction_rates("egress", &class->stats.egress,
				      interval_ns);
	}
}

static void add_count(cJSON *parent, const char *name, struct natra_count count)
{
	cJSON *o = cJSON_AddObjectToObject(parent, name);

	json_add_u64(o, "packets", count.packets);
	json_add_u64(o, "bytes", count.bytes);
}

/* The buckets that have counted something. The last one has no bound. */
static void add_histogram(cJSON *parent, const char *name,
			  const struct natra_histogram *h)
{
	cJSON *o = cJSON_AddObjectToObject(parent, name);
	cJSON *buckets;

	json_add_u64(o, "count", histogram_count(h));
	json_add_u64(o, "sum_ns", h->sum_ns);
	buckets = cJSON_AddArrayToObject(o, "buckets");
	for (size_t i = 0; i < NATRA_HISTOGRAM_BUCKETS; i++) {
		cJSON *bucket;

		if (!h->count[i])
			continue;
		bucket = cJSON_CreateObject();
		if (i < NATRA_HISTOGRAM_BUCKETS - 1)
			json_add_u64(bucket, "up_to_ns",
				     NATRA_HISTOGRAM_UP_TO(i));
		json_add_u64(bucket, "count", h->count[i]);
		cJSON_AddItemToArray(buckets, bucket);
	}
}

static void add_connects(cJSON *parent, const struct natra_connect_stats *c)
{
	cJSON *o = cJSON_AddObjectToObject(parent, "connections");

	json_add_u64(o, "begun", c->begun);
	json_add_u64(o, "repeated", c->repeated);
	json_add_u64(o, "refused", c->refused);
	json_add_u64(o, "forgotten", c->forgotten);
	add_histogram(o, "accepted", &c->accepted);
}

static cJSON *add_direction(cJSON *parent, const char *name,
			    const struct natra_direction_stats *stats,
			    const struct natra_histogram *delays,
			    const struct natra_connect_stats *connects)
{
	cJSON *o = cJSON_AddObjectToObject(parent, name);

	add_count(o, "offered", offered(stats));
	for (size_t i = 0; i < counters_len; i++)
		add_count(o, counters[i].name, *counter(stats, i));
	add_count(o, "over_packets", stats->over_packets);
	add_count(o, "over_connections", stats->over_connections);
	json_add_u64(o, "delay_sum_ns", stats->delay_sum_ns);
	json_add_u64(o, "mean_delay_ns", mean_delay_ns(stats));
	if (delays)
		add_histogram(o, "delays", delays);
	json_add_u64(o, "events_reported", stats->events_reported);
	json_add_u64(o, "events_suppressed", stats->events_suppressed);
	json_add_u64(o, "over_limit_time_ns", stats->over_limit_time_ns);
	json_add_u64(o, "over_limit_percent", stats->over_limit_percent);
	if (connects)
		add_connects(o, connects);
	return o;
}

static void add_directions(cJSON *json, const struct sample *sample,
			   const struct natra_stats *stats)
{
	cJSON *direction = add_direction(
		json, "ingress", &stats->ingress, &stats->ingress_delays,
		sample->has_sli ? &stats->ingress_connects : NULL);

	json_add_u64(direction, "heavy_flows", stats->ingress_heavy_flows);
	if (sample->has_backstop)
		add_direction(json, "backstop", &stats->backstop, NULL, NULL);
	direction = add_direction(
		json, "egress", &stats->egress, &stats->egress_delays,
		sample->has_sli ? &stats->egress_connects : NULL);
	json_add_u64(direction, "heavy_flows", stats->egress_heavy_flows);
}

cJSON *stats_json(const struct sample *sample)
{
	cJSON *json = cJSON_CreateObject(), *classes;

	json_add_text(json, "id", sample->id);
	add_directions(json, sample, &sample->stats);
	if (!sample->classes_len)
		return json;
	classes = cJSON_AddArrayToObject(json, "classes");
	for (size_t i = 0; i < sample->classes_len; i++) {
		cJSON *class = cJSON_CreateObject();

		json_add_text(class, "name", sample->classes[i].name);
		add_directions(class, sample, &sample->classes[i].stats);
		cJSON_AddItemToArray(classes, class);
	}
	return json;
}
