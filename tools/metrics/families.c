/* SPDX-License-Identifier: BSD-2-Clause */
#include "families.h"

#include <inttypes.h>
#include <string.h>

#include "../../src/util/clock.h"
#include "group_families.h"
#include "rows.h"

/* The end of a list of labels. */
#define LABELS_END                                                             \
	{                                                                      \
		NULL, NULL                                                     \
	}

/* The names of the verdicts, in the order of verdict_count(). Those of one basic name are
 * added up. Traffic that is not subject to the limit keeps its own name, so that it can
 * be left out when the traffic that passed is compared with the limit. */
static const struct {
	const char *name, *basic;
} verdicts[VERDICTS] = {
	{"mice", "passed"},          {"admitted", "passed"},
	{"paced", "delayed"},        {"marked", "marked"},
	{"dropped_rate", "dropped"}, {"dropped_horizon", "dropped"},
	{"unlimited", "unlimited"},  {"other", "passed"},
};

bool families_read_verdicts(struct families_options *o, const char *value)
{
	o->is_basic = strcmp(value, "basic") == 0;
	return o->is_basic || strcmp(value, "all") == 0;
}

bool families_read_aggregate(struct families_options *o, const char *value)
{
	o->by_namespace = strcmp(value, "namespace") == 0;
	return o->by_namespace;
}

/* The data that the series of one metric have in common. */
struct writer {
	struct exposition *e;
	const struct families_options *o;
	const struct rows *rows;
};

struct row_labels {
	struct label list[LABELS_MAX];
};

/* Returns the labels of a row's series. The last two may be without a value. */
static struct row_labels labels_of(const struct row *row, const char *direction,
				   const char *verdict)
{
	return (struct row_labels){{
		{"namespace", row->namespace},
		{"pod", row->pod},
		{"interface", row->interface},
		{"attachment", row->attachment},
		{"class", row->class},
		{"direction", direction},
		{"verdict", verdict},
		LABELS_END,
	}};
}

static uint64_t count_of(const struct natra_direction_stats *stats,
			 size_t verdict, bool is_bytes)
{
	const struct natra_count *count = verdict_count(stats, verdict);

	return is_bytes ? count->bytes : count->packets;
}

static void write_basic(const struct writer *w, const struct row *row,
			const char *direction,
			const struct natra_direction_stats *stats,
			bool is_bytes)
{
	for (size_t i = 0; i < VERDICTS; i++) {
		struct row_labels labels =
			labels_of(row, direction, verdicts[i].basic);
		uint64_t sum = 0;
		bool is_first = true;

		for (size_t j = 0; j < VERDICTS; j++) {
			if (strcmp(verdicts[i].basic, verdicts[j].basic) != 0)
				continue;
			is_first &= j >= i;
			sum += count_of(stats, j, is_bytes);
		}
		if (is_first)
			exposition_count(w->e, labels.list, sum);
	}
}

static void write_verdicts(const struct writer *w, const struct row *row,
			   const char *direction,
			   const struct natra_direction_stats *stats,
			   bool is_bytes)
{
	if (w->o->is_basic) {
		write_basic(w, row, direction, stats, is_bytes);
		return;
	}
	for (size_t i = 0; i < VERDICTS; i++) {
		struct row_labels labels =
			labels_of(row, direction, verdicts[i].name);

		exposition_count(w->e, labels.list,
				 count_of(stats, i, is_bytes));
	}
}

static void write_counters(const struct writer *w, const struct row *row,
			   bool is_bytes)
{
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++) {
		const struct row_direction *d = &row->directions[i];

		if (d->is_there)
			write_verdicts(w, row, natra_direction_name(i),
				       &d->stats, is_bytes);
	}
}

static void write_bytes(const struct writer *w, const struct row *row)
{
	write_counters(w, row, true);
}

static void write_packets(const struct writer *w, const struct row *row)
{
	write_counters(w, row, false);
}

static void write_backstop_bytes(const struct writer *w, const struct row *row)
{
	if (row->has_backstop)
		write_verdicts(w, row, NULL, &row->backstop, true);
}

static void write_backstop_packets(const struct writer *w,
				   const struct row *row)
{
	if (row->has_backstop)
		write_verdicts(w, row, NULL, &row->backstop, false);
}

/* Writes a counter of packets that only some attachments can have. Where `is_there` is
 * false and nothing was counted there are no series. */
static void write_part(const struct writer *w, const struct row *row,
		       size_t offset, bool is_there)
{
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++) {
		const struct row_direction *d = &row->directions[i];
		const struct natra_count *count =
			(const void *)((const char *)&d->stats + offset);
		struct row_labels labels =
			labels_of(row, natra_direction_name(i), NULL);

		if (d->is_there && (is_there || count->packets))
			exposition_count(w->e, labels.list, count->packets);
	}
}

static void write_over_packets(const struct writer *w, const struct row *row)
{
	const struct natra_policy *p = row->info ? &row->info->effective : NULL;

	write_part(w, row, offsetof(struct natra_direction_stats, over_packets),
		   p && (p->ingress_packet_rate_per_sec ||
			 p->egress_packet_rate_per_sec));
}

static void write_over_connections(const struct writer *w,
				   const struct row *row)
{
	const struct natra_policy *p = row->info ? &row->info->effective : NULL;

	write_part(w, row,
		   offsetof(struct natra_direction_stats, over_connections),
		   p && (p->ingress_connection_rate_per_sec ||
			 p->egress_connection_rate_per_sec));
}

/* From 0.13 ms, below which a delay matters to nobody, to 8.6 s, the last before the
 * longest delay that there is. */
static const struct buckets delay_buckets = {7, 23, 1};

static void write_delays(const struct writer *w, const struct row *row)
{
	struct buckets buckets = delay_buckets;

	if (w->o->is_basic)
		buckets.step = 2;
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++) {
		const struct row_direction *d = &row->directions[i];
		struct row_labels labels =
			labels_of(row, natra_direction_name(i), NULL);

		if (d->is_held)
			exposition_histogram(w->e, labels.list, &d->delays,
					     &buckets);
	}
}

static void write_connects(const struct writer *w, const struct row *row)
{
	struct buckets buckets = delay_buckets;

	if (w->o->is_basic)
		buckets.step = 2;
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++) {
		const struct row_direction *d = &row->directions[i];
		struct row_labels labels =
			labels_of(row, natra_direction_name(i), NULL);

		if (d->is_measured)
			exposition_histogram(w->e, labels.list,
					     &d->connects.accepted, &buckets);
	}
}

static void write_connect_count(const struct writer *w, const struct row *row,
				size_t offset)
{
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++) {
		const struct row_direction *d = &row->directions[i];
		struct row_labels labels =
			labels_of(row, natra_direction_name(i), NULL);
		uint64_t count;

		memcpy(&count, (const char *)&d->connects + offset,
		       sizeof(count));
		if (d->is_measured)
			exposition_count(w->e, labels.list, count);
	}
}

static void write_begun(const struct writer *w, const struct row *row)
{
	write_connect_count(w, row,
			    offsetof(struct natra_connect_stats, begun));
}

static void write_repeated(const struct writer *w, const struct row *row)
{
	write_connect_count(w, row,
			    offsetof(struct natra_connect_stats, repeated));
}

static void write_refused(const struct writer *w, const struct row *row)
{
	write_connect_count(w, row,
			    offsetof(struct natra_connect_stats, refused));
}

static void write_forgotten(const struct writer *w, const struct row *row)
{
	write_connect_count(w, row,
			    offsetof(struct natra_connect_stats, forgotten));
}

/* A direction without a limit has no series. */
static void write_limit(const struct writer *w, const struct row *row)
{
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++) {
		uint64_t rate = row->directions[i].bytes_per_sec;
		struct row_labels labels =
			labels_of(row, natra_direction_name(i), NULL);

		if (rate)
			exposition_count(w->e, labels.list, rate);
	}
}

static void write_burst(const struct writer *w, const struct row *row)
{
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++) {
		const struct row_direction *d = &row->directions[i];
		struct row_labels labels =
			labels_of(row, natra_direction_name(i), NULL);

		if (d->bytes_per_sec && !row->class)
			exposition_count(w->e, labels.list, d->burst_bytes);
	}
}

static void write_flows(const struct writer *w, const struct row *row)
{
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++) {
		const struct row_direction *d = &row->directions[i];
		struct row_labels labels =
			labels_of(row, natra_direction_name(i), NULL);

		if (d->is_there)
			exposition_count(w->e, labels.list, d->heavy_flows);
	}
}

static void write_bypassed(const struct writer *w, const struct row *row)
{
	for (int i = 0; i < NATRA_DIRECTION_MAX && !row->class; i++) {
		const struct row_direction *d = &row->directions[i];
		struct row_labels labels =
			labels_of(row, natra_direction_name(i), NULL);

		/* The percentage is 0 also where nobody has looked. */
		if (row->is_inspected && d->is_there)
			exposition_percent(w->e, labels.list,
					   d->bypassed_percent);
	}
}

static void write_events(const struct writer *w, const struct row *row,
			 bool told)
{
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++) {
		const struct row_direction *d = &row->directions[i];
		struct row_labels labels =
			labels_of(row, natra_direction_name(i), NULL);

		if (d->is_there)
			exposition_count(w->e, labels.list,
					 told ? d->stats.events_reported
					      : d->stats.events_suppressed);
	}
}

static void write_reported(const struct writer *w, const struct row *row)
{
	write_events(w, row, true);
}

static void write_suppressed(const struct writer *w, const struct row *row)
{
	write_events(w, row, false);
}

static void write_info(const struct writer *w, const struct row *row)
{
	const struct natra_info *info = row->info;
	const char *ingress_mode, *fast_pass;

	if (!info || info->unshaped || row->class)
		return;
	ingress_mode = natra_ingress_mode_name(info->effective.ingress_mode);
	fast_pass = natra_fast_pass_name(info->effective.fast_pass);
	exposition_count(
		w->e,
		(const struct label[]){
			{"namespace", row->namespace},
			{"pod", row->pod},
			{"interface", row->interface},
			{"attachment", row->attachment},
			{"network", info->network[0] ? info->network : NULL},
			{"mode", natra_attach_mode_name(info->mode)},
			{"edt", info->edt_active ? "on" : "off"},
			{"ingress_mode", info->other_abi ? NULL : ingress_mode},
			{"fast_pass", info->other_abi ? NULL : fast_pass},
			LABELS_END,
		},
		1);
}

static void write_unshaped(const struct writer *w, const struct row *row)
{
	if (!row->class)
		exposition_count(w->e, labels_of(row, NULL, NULL).list,
				 row->unshaped);
}

static void write_before(const struct writer *w, const struct row *row)
{
	if (row->is_inspected && !row->class)
		exposition_count(w->e, labels_of(row, NULL, NULL).list,
				 row->program_before);
}

static void write_failed(const struct writer *w, const struct row *row)
{
	if (row->is_inspected && !row->class)
		exposition_count(w->e, labels_of(row, NULL, NULL).list,
				 row->check_failed);
}

static const struct {
	struct metric metric;
	void (*write)(const struct writer *w, const struct row *row);
} families[] = {
	{{"natra_bytes", METRIC_COUNTER, "bytes",
	  "Bytes on the wire by what was done with them; each packet is in one verdict."},
	 write_bytes},
	{{"natra_packets", METRIC_COUNTER, NULL,
	  "Packets by what was done with them; each packet is in one verdict."},
	 write_packets},
	{{"natra_backstop_bytes", METRIC_COUNTER, "bytes",
	  "Bytes that the backstop of ingress in the pod saw: ingress has those, too, that did not come past the host side."},
	 write_backstop_bytes},
	{{"natra_backstop_packets", METRIC_COUNTER, NULL,
	  "Packets that the backstop of ingress in the pod saw: ingress has those, too, that did not come past the host side."},
	 write_backstop_packets},
	{{"natra_over_packets", METRIC_COUNTER, NULL,
	  "Packets over the limit of packets, which are in dropped_rate too."},
	 write_over_packets},
	{{"natra_over_connections", METRIC_COUNTER, NULL,
	  "SYNs over the limit of new connections, which are in dropped_rate too."},
	 write_over_connections},
	{{"natra_delay_seconds", METRIC_HISTOGRAM, "seconds",
	  "Delays given to packets that were held."},
	 write_delays},
	{{"natra_connect_seconds", METRIC_HISTOGRAM, "seconds",
	  "From the SYN of a TCP connection to its SYN-ACK, where sli is on."},
	 write_connects},
	{{"natra_connects_begun", METRIC_COUNTER, NULL,
	  "TCP connections that were begun, where sli is on."},
	 write_begun},
	{{"natra_connects_refused", METRIC_COUNTER, NULL,
	  "TCP connections that were answered by a reset, where sli is on."},
	 write_refused},
	{{"natra_connects_repeated", METRIC_COUNTER, NULL,
	  "SYNs that were sent again, where sli is on."},
	 write_repeated},
	{{"natra_connects_forgotten", METRIC_COUNTER, NULL,
	  "TCP connections that are not in natra_connect_seconds, because too many waited."},
	 write_forgotten},
	{{"natra_limit_bytes_per_second", METRIC_GAUGE, "bytes_per_second",
	  "The rate that the direction is limited to."},
	 write_limit},
	{{"natra_limit_burst_bytes", METRIC_GAUGE, "bytes",
	  "What may pass at once before the rate holds."},
	 write_burst},
	{{"natra_heavy_flows", METRIC_GAUGE, NULL,
	  "Flows over the threshold in the last minute that are in the table (at most 32)."},
	 write_flows},
	{{"natra_events", METRIC_COUNTER, NULL,
	  "Events that natractl events shows."},
	 write_reported},
	{{"natra_events_suppressed", METRIC_COUNTER, NULL,
	  "Flows that became heavy and were not reported, since many others were."},
	 write_suppressed},
	{{"natra_attachment", METRIC_INFO, NULL,
	  "How the interface is limited."},
	 write_info},
	{{"natra_unshaped", METRIC_GAUGE, NULL,
	  "The interface should have limits and has none."},
	 write_unshaped},
	{{"natra_program_before", METRIC_GAUGE, NULL,
	  "Another program runs in front of natra's, which can bypass the limit."},
	 write_before},
	{{"natra_bypassed_ratio", METRIC_GAUGE, "ratio",
	  "The part of the interface's bytes that natra's program did not see."},
	 write_bypassed},
	{{"natra_check_failed", METRIC_GAUGE, NULL,
	  "The kernel does not have what was set, or cannot be asked."},
	 write_failed},
};

static void write_attachments(struct exposition *e,
			      const struct node_metrics *node)
{
	static const struct metric metric = {"natra_attachments", METRIC_GAUGE,
					     NULL,
					     "Interfaces with limits by mode."};
	uint64_t counts[NATRA_ATTACH_MODE_MAX] = {0};

	for (size_t i = 0; i < node->len; i++) {
		const struct natra_info *info = &node->list[i].info;

		if ((unsigned int)info->mode < NATRA_ATTACH_MODE_MAX &&
		    !info->unshaped)
			counts[info->mode]++;
	}
	exposition_begin(e, &metric);
	for (int mode = NATRA_ATTACH_MODE_AUTO + 1;
	     mode < NATRA_ATTACH_MODE_MAX; mode++)
		exposition_count(
			e,
			(const struct label[]){
				{"mode", natra_attach_mode_name(
						 (enum natra_attach_mode)mode)},
				LABELS_END},
			counts[mode]);
}

static void write_features(struct exposition *e, const struct natra_features *f)
{
	static const struct metric metric = {"natra_kernel_supports",
					     METRIC_GAUGE, NULL,
					     "What the kernel can do."};
	const struct {
		const char *name;
		bool is_there;
	} features[] = {
		{"bpf", f->bpf},
		{"bpffs", f->bpffs},
		{"tcx", f->tcx},
		{"clsact", f->clsact},
		{"fq", f->fq},
		{"coarse_clock", f->coarse_clock},
		{"atomics", f->atomics},
		{"netns_cookie", f->netns_cookie},
		{"set_tstamp", f->set_tstamp},
	};

	exposition_begin(e, &metric);
	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		exposition_count(
			e,
			(const struct label[]){{"feature", features[i].name},
					       LABELS_END},
			features[i].is_there);
}

static void write_build(struct exposition *e, const struct natra_features *f)
{
	static const struct metric metric = {"natra_build", METRIC_INFO, NULL,
					     "The version of natra."};
	char abi[16];

	(void)snprintf(abi, sizeof(abi), "%" PRIu32, f->abi);
	exposition_begin(e, &metric);
	exposition_count(e,
			 (const struct label[]){{"version", natra_version()},
						{"abi", abi},
						LABELS_END},
			 1);
}

static void write_node(struct exposition *e, const struct node_metrics *node)
{
	static const struct metric mismatches = {
		"natra_abi_mismatches", METRIC_GAUGE, NULL,
		"Attachments that another version made and this one cannot read."};
	static const struct metric duration = {
		"natra_scrape_duration_seconds", METRIC_GAUGE, "seconds",
		"How long it took to collect these metrics."};
	static const struct label none[] = {LABELS_END};

	write_attachments(e, node);
	groups_write(e, node);
	exposition_begin(e, &mismatches);
	exposition_count(e, none, node->of_other_abi);
	if (node->has_features) {
		write_features(e, &node->features);
		write_build(e, &node->features);
	}
	exposition_begin(e, &duration);
	exposition_seconds(e, none, clock_ns(CLOCK_BOOTTIME) - node->began_ns);
}

void families_write(struct exposition *e, const struct node_metrics *node,
		    const struct families_options *o)
{
	struct rows rows = rows_make(node, o->by_namespace);
	struct writer writer = {e, o, &rows};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		exposition_begin(e, &families[i].metric);
		for (size_t j = 0; j < rows.len; j++)
			families[i].write(&writer, &rows.list[j]);
	}
	write_node(e, node);
	rows_free(&rows);
}
