/* SPDX-License-Identifier: BSD-2-Clause */
#include "keeper.h"

/* This is enough for hundreds of pods on a busy machine. */
#define JOB_MAX_MS   120000
#define RETRY_MIN_MS 500
#define RETRY_MAX_MS 10000

static void run_programs(void *arg)
{
	const struct keeper *k = arg;

	programs_job_run(&k->jobs, k->programs.report);
}

static void run_pods(void *arg)
{
	const struct keeper *k = arg;
	struct jobs jobs = k->jobs;
	char before[64];

	if (pinwatch_before(&k->pins, before, sizeof(before)))
		jobs.bpffs_before = before;
	/* Upstream's limits stay if natra's own may fail to take effect. */
	jobs.replace = jobs.replace && k->programs_are_well;
	pods_job_run(&jobs, k->after, k->pods.report);
}

static const char *word_of(enum work_end end)
{
	return end == WORK_LATE ? "took too long" : "ended half-way";
}

static void programs_done(void *arg, enum work_end end)
{
	struct keeper *k = arg;
	const struct programs_report *report = k->programs.report;

	k->programs_are_well = end == WORK_DONE && report->r == 0;
	if (end != WORK_DONE)
		health_fail(k->health, PART_PROGRAMS, NATRA_LOG_ERROR,
			    "loading the programs %s", word_of(end));
	else if (report->r < 0)
		health_fail(k->health, PART_PROGRAMS, NATRA_LOG_ERROR, "%s",
			    report->error);
	else
		health_ready(k->health, PART_PROGRAMS);
	if (report->removed)
		log_write(k->jobs.log, NATRA_LOG_INFO,
			  "removed %zu attachments whose pods are gone",
			  report->removed);
	pinwatch_begin(&k->pins);
	work_start(&k->pods);
}

static bool say_pods(const struct keeper *k, enum work_end end)
{
	const struct pods_report *report = k->pods.report;
	struct log_words words = {0};

	if (end != WORK_DONE) {
		health_fail(k->health, PART_PODS, NATRA_LOG_ERROR,
			    "looking at the running pods %s", word_of(end));
		return false;
	}
	if (report->r < 0) {
		health_fail(k->health, PART_PODS, NATRA_LOG_ERROR, "%s",
			    report->error);
		return false;
	}
	health_ready(k->health, PART_PODS);
	k->health->unreadable_results = report->unreadable;
	if (report->unreadable)
		health_note(k->health, PART_PODS,
			    "%zu cached results cannot be read",
			    report->unreadable);
	else
		health_note(k->health, PART_PODS, "%s", "");
	k->health->failed_pods = report->failed;
	k->health->unnamed_interfaces = report->unnamed;
	k->health->has_results = k->jobs.adopt;
	if (!report->adopted && !report->replaced && !report->upgraded &&
	    !report->failed)
		return true;
	log_add_u64(&words, "adopted", report->adopted);
	log_add_u64(&words, "replaced", report->replaced);
	log_add_u64(&words, "upgraded", report->upgraded);
	log_add_u64(&words, "failed", report->failed);
	if (report->later)
		log_add_u64(&words, "later", report->later);
	log_line(k->jobs.log, NATRA_LOG_INFO, "looked at the running pods",
		 &words);
	return true;
}

static void pods_done(void *arg, enum work_end end)
{
	struct keeper *k = arg;
	const struct pods_report *report = k->pods.report;
	bool is_seen = say_pods(k, end);
	bool is_well = is_seen && k->programs_are_well;
	uint64_t next_ms = k->period_ms;

	pinwatch_end(&k->pins,
		     is_seen && !report->failed && !report->unreadable);
	k->after = report->last;
	k->retry_ms = is_well       ? 0
		      : k->retry_ms ? 2 * k->retry_ms
				    : RETRY_MIN_MS;
	if (k->retry_ms > RETRY_MAX_MS)
		k->retry_ms = RETRY_MAX_MS;
	if (k->retry_ms && k->retry_ms < next_ms)
		next_ms = k->retry_ms;
	/* The pods behind the last one that had a turn wait. */
	if (is_seen && report->last && next_ms > RETRY_MAX_MS)
		next_ms = RETRY_MAX_MS;
	/* If nothing was replaced, the same pods would take up the time again. */
	if (is_well && report->later && report->replaced)
		next_ms = 0;
	timer_set(&k->next, k->is_asked ? 0 : next_ms);
}

static void look(void *arg)
{
	struct keeper *k = arg;

	/* Whoever asks from here on may have changed the configuration, of which the programs are. */
	k->is_asked = false;
	work_start(&k->programs);
}

void keeper_ask(struct keeper *k)
{
	k->is_asked = true;
	if (k->next.is_set)
		timer_set(&k->next, 0);
}

static void lost(void *arg)
{
	struct keeper *k = arg;

	if (k->lost)
		k->lost(k->arg);
	keeper_ask(k);
}

int keeper_open(struct keeper *k, struct workers *workers)
{
	int r;

	k->programs = (struct work){
		.name = "the programs",
		.run = run_programs,
		.done = programs_done,
		.arg = k,
		.report_size = sizeof(struct programs_report),
		.time_max_ms = JOB_MAX_MS,
	};
	k->pods = (struct work){
		.name = "the running pods",
		.run = run_pods,
		.done = pods_done,
		.arg = k,
		.report_size = sizeof(struct pods_report),
		.time_max_ms = JOB_MAX_MS,
		.sets_limits = true,
	};
	r = work_open(&k->programs, workers);
	if (r == 0)
		r = work_open(&k->pods, workers);
	if (r == 0)
		r = timer_open(&k->next, workers->loop, look, k);
	if (r < 0)
		return r;
	k->pins.log = k->jobs.log;
	k->pins.bpffs = k->jobs.bpffs;
	k->pins.lost = lost;
	k->pins.arg = k;
	pinwatch_open(&k->pins, workers->loop);
	health_expect(k->health, PART_PROGRAMS);
	health_expect(k->health, PART_PODS);
	timer_set(&k->next, 0);
	return 0;
}

void keeper_close(struct keeper *k)
{
	if (!k->programs.workers)
		return;
	timer_close(&k->next, k->programs.workers->loop);
	work_close(&k->pods);
	work_close(&k->programs);
	pinwatch_close(&k->pins);
}
