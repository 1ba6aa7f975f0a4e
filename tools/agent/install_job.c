/* SPDX-License-Identifier: BSD-2-Clause */
#include "install_job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How often a list may change while it is read, before the job gives up. The
 * agent then begins another one. */
#define ROUNDS 5

static void copy(char (*to)[INSTALL_TEXT_MAX], const char *text)
{
	(void)snprintf(*to, sizeof(*to), "%s", text ? text : "");
}

static void note_changes(struct install_report *report,
			 const struct install_plan *plan, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		/* A reload is not counted: it only makes the runtime see the other
		 * changes. */
		if (plan->changes[i].kind == INSTALL_RELOAD)
			continue;
		if (report->changes < INSTALL_NOTES_MAX)
			copy(&report->paths[report->changes],
			     plan->changes[i].path);
		report->changes++;
	}
}

static void note_plan(struct install_report *report,
		      const struct install_plan *plan)
{
	size_t len;

	report->mode = plan->mode;
	copy(&report->reason, plan->reason);
	len = plan->element ? strlen(plan->element) : 0;
	if (len >= sizeof(report->element))
		len = 0;
	memcpy(report->element, plan->element ? plan->element : "", len);
	report->element[len] = '\0';
	for (size_t i = 0; i < INSTALL_NOTES_MAX; i++)
		copy(&report->warnings[i],
		     i < plan->warnings_len ? plan->warnings[i] : "");
}

/* Returns 1 if there was something to do, after which the next plan may differ;
 * 0 if not. */
static int round_of(struct install *i, bool apply,
		    struct install_report *report)
{
	struct install_plan *plan = NULL;
	size_t made;
	int r = install_plan(i, &plan);

	if (r < 0)
		return r;
	note_plan(report, plan);
	made = plan->changes_len;
	if (apply)
		r = install_apply(i, plan, &made);
	note_changes(report, plan, made);
	if (r == 0 && apply && plan->changes_len)
		r = 1;
	install_plan_free(plan);
	return r;
}

static int work(struct install *i, const struct install_request *request,
		bool apply, const struct dirwatch *watch,
		struct install_report *report)
{
	int r = install_open(i, request);

	if (r < 0)
		return r;
	/* The directories are locked now, so a removal has happened, and its
	 * event is there, or it begins when this job has ended. */
	report->is_removed = dirwatch_drain(watch);
	if (report->is_removed)
		return 0;
	copy(&report->net_dir, install_net_dir(i));
	copy(&report->bin_dir, install_bin_dir(i));
	for (int n = 0; n < ROUNDS; n++) {
		r = round_of(i, apply, report);
		if (r == 0 || (r < 0 && r != -EAGAIN))
			return r;
	}
	return -EAGAIN;
}

void install_job_run(const struct install_request *request, bool apply,
		     const struct dirwatch *watch,
		     struct install_report *report)
{
	struct install *i = install_new();

	report->r = work(i, request, apply, watch, report);
	if (report->r < 0)
		copy(&report->error, install_error(i));
	/* Without an error text no call has failed: there was something to do in each
	 * round. */
	if (report->r < 0 && !report->error[0])
		copy(&report->error, "somebody keeps changing the directories");
	install_free(i);
}
