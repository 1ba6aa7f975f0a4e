/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics of the agent itself, which it has without a look at pods. */
#include "installer.h"
#include "scrape.h"

static const struct label no_labels[] = {{NULL, NULL}};

static void write_one(struct exposition *e, const struct metric *metric,
		      const struct label *labels, uint64_t value)
{
	exposition_begin(e, metric);
	exposition_count(e, labels, value);
}

/* Writes what /readyz answers, of each part that the agent has. */
static void write_ready(struct exposition *e, const struct health *health)
{
	static const struct metric ready = {
		"natra_ready", METRIC_GAUGE, NULL,
		"The part of the agent has done what it is for, as /readyz says it."};

	exposition_begin(e, &ready);
	for (int part = 0; part < PART_MAX; part++) {
		if (health->parts[part].is_on)
			exposition_count(
				e,
				(const struct label[]){
					{"part", health_part_name(part)},
					{NULL, NULL}},
				health->parts[part].is_ready);
	}
}

static void write_installer(struct exposition *e, const struct scrape *scrape)
{
	static const struct metric installs = {
		"natra_installs", METRIC_COUNTER, NULL,
		"How often the plugin or a list was written, or could not be."};
	static const struct metric repairs = {
		"natra_conflist_repairs", METRIC_COUNTER, NULL,
		"How often something was written again that somebody had undone."};
	const struct installer *in = scrape->installer;

	write_one(e, &installs,
		  (const struct label[]){{"result", "success"}, {NULL, NULL}},
		  in->written);
	exposition_count(
		e, (const struct label[]){{"result", "failure"}, {NULL, NULL}},
		in->failures);
	write_one(e, &repairs, no_labels, in->repaired);
}

static void write_hooks(struct exposition *e, const struct health *health)
{
	static const struct metric repairs = {
		"natra_hook_repairs", METRIC_COUNTER, NULL,
		"How often natra's programs were put back on a hook that somebody"
		" took."};
	static const struct metric contested = {
		"natra_contested_hooks", METRIC_GAUGE, NULL,
		"Host-side interfaces where somebody takes natra's place each"
		" time."};

	write_one(e, &repairs, no_labels, health->hook_repairs);
	write_one(e, &contested, no_labels, health->contested_hooks);
}

/* Writes what the files of the options are worth. */
static void write_files(struct exposition *e, const struct health *health)
{
	static const struct metric namespaces = {
		"natra_unreadable_namespaces_file", METRIC_GAUGE, NULL,
		"The file of namespaces cannot be read or copied: what pods have is"
		" older, or none."};
	static const struct metric groups = {
		"natra_failed_groups", METRIC_GAUGE, NULL,
		"Groups of the file that could not be set at the last look."};
	static const struct metric groups_file = {
		"natra_unreadable_groups_file", METRIC_GAUGE, NULL,
		"The file of groups cannot be read or applied: the groups that were"
		" set stay."};

	if (health->parts[PART_NAMESPACES].is_on)
		write_one(e, &namespaces, no_labels, health->old_namespaces);
	if (health->parts[PART_GROUPS].is_on) {
		write_one(e, &groups, no_labels, health->failed_groups);
		write_one(e, &groups_file, no_labels,
			  health->unreadable_groups_file);
	}
}

void own_families_write(struct exposition *e, const struct scrape *scrape)
{
	static const struct metric errors = {
		"natra_scrape_errors", METRIC_COUNTER, NULL,
		"Scrapes and inspections that failed since the agent started."};
	static const struct metric edits = {
		"natra_refused_edits", METRIC_COUNTER, NULL,
		"Edits of pods' annotations that were wrong, not allowed, or not"
		" possible, since the agent started."};

	static const struct metric followed = {
		"natra_followed_edits", METRIC_COUNTER, NULL,
		"Edits of pods' annotations that changed the limits of a running"
		" pod, since the agent started."};
	static const struct metric lost = {
		"natra_lost_events", METRIC_COUNTER, NULL,
		"Events about pods that were dropped before they were sent, since"
		" the agent started."};
	static const struct metric events = {
		"natra_unreadable_events", METRIC_COUNTER, NULL,
		"Events of the API server's watch that could not be read."};
	static const struct metric results = {
		"natra_unreadable_results", METRIC_GAUGE, NULL,
		"Files in libcni's cache that could not be read at the last look."};
	static const struct metric failed = {
		"natra_failed_pods", METRIC_GAUGE, NULL,
		"Running pods that could not be limited or upgraded at the last"
		" look."};
	static const struct metric unnamed = {
		"natra_unnamed_interfaces", METRIC_GAUGE, NULL,
		"Interfaces that lead out of limited pods and that no cached"
		" result names, at the last look."};
	static const struct metric stuck = {
		"natra_stuck_jobs", METRIC_GAUGE, NULL,
		"Jobs of the agent that were killed and do not end, as beside a disk"
		" that hangs."};
	const struct health *health = scrape->health;

	write_ready(e, health);
	write_one(e, &stuck, no_labels, health->stuck_jobs);
	write_files(e, health);
	if (health->parts[PART_PODS].is_on)
		write_hooks(e, health);
	if (scrape->installer)
		write_installer(e, scrape);
	if (health->parts[PART_PODS].is_on)
		write_one(e, &failed, no_labels, health->failed_pods);
	if (health->parts[PART_API].is_on) {
		write_one(e, &events, no_labels, health->unreadable_events);
		write_one(e, &lost, no_labels, health->lost_events);
		write_one(e, &followed, no_labels, health->followed_edits);
	}
	if (health->has_results) {
		write_one(e, &results, no_labels, health->unreadable_results);
		write_one(e, &unnamed, no_labels, health->unnamed_interfaces);
	}
	write_one(e, &errors, no_labels, scrape->errors);
	write_one(e, &edits, no_labels, scrape->health->refused_edits);
}
