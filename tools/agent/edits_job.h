/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives running pods the limits that their present annotations ask for. */
#ifndef NATRA_AGENT_EDITS_JOB_H
#define NATRA_AGENT_EDITS_JOB_H

#include "jobs.h"

/* How many pods one job looks at. */
#define EDITS_MAX 64

/* A pod whose annotations are new or have changed. */
struct edit {
	char *uid, *namespace, *name;
	char *annotations; /* JSON of those that matter */
	bool has_failed;   /* it is not the first try */
	bool is_gone;      /* the pod was deleted while this was in the queue */
	struct edit *next;
};

struct edit_result {
	bool is_found; /* the pod has an interface by now */
	bool is_bad;   /* the annotations are wrong, and nothing was changed */
	bool is_failed;
	/* Nothing was changed, since upstream's queues must drain first. */
	bool is_later;
	char message[384];
};

struct edits_report {
	int r;
	size_t count; /* how many pods were looked at */
	struct edit_result results[EDITS_MAX];
};

/* Looks at the first EDITS_MAX entries of the queue. */
void edits_job_run(const struct jobs *jobs, const struct edit *first,
		   struct edits_report *report);

#endif
