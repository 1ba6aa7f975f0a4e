/* SPDX-License-Identifier: BSD-2-Clause */
#include "install_job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* What a round before has written is replaced. */
static int write_element(int fd, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n < 0)
			return -errno;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A later plan repeats what still holds. */
static void note_warning(struct install_report *report, const char *warning)
{
	char text[INSTALL_TEXT_MAX];

	copy(&text, warning);
	for (size_t i = 0; i < INSTALL_NOTES_MAX; i++) {
		if (!report->warnings[i][0])
			copy(&report->warnings[i], text);
		if (strcmp(report->warnings[i], text) == 0)
			return;
	}
}

static void note_plan(struct install_report *report,
		      const struct install_plan *plan)
{
	report->mode = plan->mode;
	copy(&report->reason, plan->reason);
	for (size_t i = 0; i < plan->warnings_len; i++)
		note_warning(report, plan->warnings[i]);
}

/* Returns 1 if there was something to do, after which the next plan may differ;
 * 0 if not. */
static int round_of(struct install *i, bool apply, int element_fd,
		    struct install_report *report)
{
	struct install_plan *plan = NULL;
	size_t made;
	int r = install_plan(i, &plan);

	if (r < 0)
		return r;
	note_plan(report, plan);
	made = plan->changes_len;
	r = write_element(element_fd, plan->element);
	if (r < 0) {
		(void)snprintf(report->error, sizeof(report->error),
			       "natra's element of the list: %s", strerror(-r));
		made = 0;
	} else if (apply) {
		r = install_apply(i, plan, &made);
	}
	note_changes(report, plan, made);
	if (r == 0 && apply && plan->changes_len)
		r = 1;
	install_plan_free(plan);
	return r;
}

static int work(struct install *i, const struct install_request *request,
		bool apply, const struct dirwatch *watch, int element_fd,
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
		r = round_of(i, apply, element_fd, report);
		if (r == 0 || (r < 0 && r != -EAGAIN))
			return r;
	}
	return -EAGAIN;
}

void install_job_run(const struct install_request *request, bool apply,
		     const struct dirwatch *watch, int element_fd,
		     struct install_report *report)
{
	struct install *i = install_new();

	report->r = work(i, request, apply, watch, element_fd, report);
	if (report->r < 0 && !report->error[0])
		copy(&report->error, install_error(i));
	/* Without an error text no call has failed: there was something to do in each
	 * round. */
	if (report->r < 0 && !report->error[0])
		copy(&report->error, "somebody keeps changing the directories");
	install_free(i);
}
