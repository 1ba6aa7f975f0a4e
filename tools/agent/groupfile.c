/* SPDX-License-Identifier: BSD-2-Clause */
#include "groupfile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* There is a longest time between two looks because a mount over the directory is no
 * event, and because somebody else may have changed a group. */
#define RECHECK_MS 60000
#define JOB_MAX_MS 30000

static void run(void *arg)
{
	struct groupfile *g = arg;

	groupfile_job_run(g->jobs, g->path, &g->names, g->work.report);
}

static void look(void *arg)
{
	struct groupfile *g = arg;

	g->unseen.is_changed = false;
	dirwatch_add_file(&g->watch, g->path);
	work_start(&g->work);
}

static void changed(void *arg)
{
	struct groupfile *g = arg;

	const bool waits = dirwatch_note(&g->unseen);

	backoff_reset(&g->backoff);
	if (!g->work.pid && !g->work.is_waiting && waits)
		timer_set(&g->next, DIRWATCH_QUIET_MS);
}

/* Writes the first error, and what has not changed for it, or "". */
static void describe(const struct groupfile_report *report, enum work_end end,
		     char *ret_error, size_t size)
{
	ret_error[0] = '\0';
	if (end != WORK_DONE)
		(void)snprintf(ret_error, size, "the job did not end");
	else if (report->failed && !report->is_read)
		(void)snprintf(ret_error, size,
			       "%s: the groups keep what they have",
			       report->error);
	else if (report->failed == 1)
		(void)snprintf(ret_error, size,
			       "%s: this group keeps what it has",
			       report->error);
	else if (report->failed)
		(void)snprintf(ret_error, size,
			       "%s: %zu groups keep what they have",
			       report->error, report->failed);
}

static void note_failures(struct health *health,
			  const struct groupfile_report *report)
{
	health->unreadable_groups_file = !report->is_read;
	health->failed_groups = report->is_read ? report->failed : 0;
}

static void say(struct groupfile *g, const struct groupfile_report *report,
		enum work_end end)
{
	struct log_words words = {0};
	char error[sizeof(g->said)];

	describe(report, end, error, sizeof(error));
	g->was_read |= end == WORK_DONE && report->is_read;
	if (g->was_read)
		health_ready(g->health, PART_GROUPS);
	else
		health_fail(g->health, PART_GROUPS, NATRA_LOG_ERROR, "%s: %s",
			    g->path, error);
	if (end == WORK_DONE)
		note_failures(g->health, report);
	if (g->was_read && error[0] && strcmp(g->said, error) != 0)
		log_write(g->jobs->log, NATRA_LOG_ERROR, "%s: %s", g->path,
			  error);
	memcpy(g->said, error, sizeof(g->said));
	if (end != WORK_DONE || (!report->made && !report->removed))
		return;
	log_add_u64(&words, "made", report->made);
	log_add_u64(&words, "removed", report->removed);
	log_line(g->jobs->log, NATRA_LOG_INFO, "groups", &words);
}

/* Takes over what the job has set. One that has been killed may have set some, and those
 * of before are the agent's still. */
static void take_names(struct groupfile *g, const struct group_names *names,
		       enum work_end end)
{
	if (end == WORK_DONE) {
		g->names = *names;
		return;
	}
	for (size_t i = 0; i < names->len && i < NATRA_GROUPS_MAX; i++)
		groupfile_add_name(&g->names, names->list[i]);
}

static void done(void *arg, enum work_end end)
{
	struct groupfile *g = arg;
	const struct groupfile_report *report = g->work.report;
	bool is_well = end == WORK_DONE && !report->failed && !report->waiting;

	say(g, report, end);
	if (is_well)
		backoff_reset(&g->backoff);
	timer_set(&g->next, g->unseen.is_changed ? DIRWATCH_QUIET_MS
			    : is_well            ? RECHECK_MS
				      : backoff_next_ms(&g->backoff, 0));
	take_names(g, &report->names, end);
	if (report->made)
		g->made(g->arg);
}

int groupfile_open(struct groupfile *g, struct workers *workers)
{
	int r;

	g->next.source.fd = -1;
	g->watch.changed = g->watch.removed = changed;
	g->watch.arg = g;
	r = dirwatch_open(&g->watch, workers->loop);
	if (r < 0)
		log_write(g->jobs->log, NATRA_LOG_WARN,
			  "%s: is looked at every %d s only: %s", g->path,
			  RECHECK_MS / 1000, strerror(-r));
	g->work = (struct work){
		.name = "the file of groups",
		.run = run,
		.done = done,
		.arg = g,
		.report_size = sizeof(struct groupfile_report),
		.time_max_ms = JOB_MAX_MS,
		.sets_limits = true,
	};
	r = work_open(&g->work, workers);
	health_expect(g->health, PART_GROUPS);
	if (r == 0)
		r = timer_open(&g->next, workers->loop, look, g);
	if (r == 0)
		timer_set(&g->next, 0);
	return r;
}

void groupfile_ask(struct groupfile *g)
{
	if (g->work.workers)
		changed(g);
}

void groupfile_close(struct groupfile *g)
{
	if (!g->work.workers)
		return;
	dirwatch_close(&g->watch);
	timer_close(&g->next, g->work.workers->loop);
	work_close(&g->work);
}
