/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives running pods the limits that their present annotations ask for. */
#ifndef NATRA_AGENT_EDITS_JOB_H
#define NATRA_AGENT_EDITS_JOB_H

#include "backoff.h"
#include "jobs.h"

/* How many pods one job looks at. */
#define EDITS_MAX 64

/* A pod whose annotations are new or have changed. */
struct edit {
	char *uid, *namespace, *name;
	char *mirrored; /* the uid of the static pod that it mirrors, or "" */
	/* JSON of those that matter; NULL: there was no room for it, and the pod is read
	 * again. */
	char *annotations;
	size_t len;      /* of the text */
	uint64_t hash;   /* of the text, also while there was no room for it */
	bool has_failed; /* it is not the first try */
	bool was_held;   /* in an earlier one */
	bool was_over;   /* likewise */
	bool is_quiet;   /* the job logs only errors */
	/* When it is tried again, and how long it waits the next time. */
	uint64_t due_ms;
	struct backoff backoff;
	bool is_gone; /* the pod was deleted while this was in the queue */
	/* The annotations have changed since a job may have begun with the older ones. */
	bool is_newer;
	/* The pod was reported again meanwhile, with the same ones. */
	bool is_reported;
	/* A job has ended while it worked on this one, which has one by itself now. */
	bool is_slow;
	struct edit *next;
};

struct edit_result {
	bool is_found; /* the pod has an interface by now */
	bool is_bad;   /* the annotations are wrong, and nothing was changed */
	bool is_over; /* the pod has the maximum of its namespace in place of more */
	bool is_held; /* a part of the edit was not done, see held.h */
	bool is_failed;
	bool is_changed; /* the limits of the pod */
	/* Nothing was changed, since upstream's queues must drain first, or since there is
	 * no cache of results. */
	bool is_later;
	char message[384];
};

struct edits_report {
	int r;
	size_t count; /* how many pods were looked at */
	size_t now; /* 1 and the index of the pod that is worked on; 0: none */
	struct edit_result results[EDITS_MAX];
};

/* Looks at the first EDITS_MAX entries of the queue, and by itself at one that is slow. */
void edits_job_run(const struct jobs *jobs, const struct edit *first,
		   struct edits_report *report);

#endif
