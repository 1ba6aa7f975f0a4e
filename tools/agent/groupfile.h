/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of groups, such as a mounted ConfigMap's:
 *
 *   {"node": {"egressRate": "10G"}, "blue": {"egressRate": "1G", "parent": "node"}}
 *
 * A group of the file has the limits that it has there. When a group disappears from the
 * file while the agent runs, it is removed as soon as it has no member. What cannot be read
 * changes nothing, and is logged.
 */
#ifndef NATRA_AGENT_GROUPFILE_H
#define NATRA_AGENT_GROUPFILE_H

#include "backoff.h"
#include "dirwatch.h"
#include "jobs.h"
#include "work.h"

struct group_names {
	size_t len;
	char list[NATRA_GROUPS_MAX][NATRA_GROUP_NAME_MAX + 1];
};

struct groupfile_report {
	size_t failed;   /* groups, or the file itself */
	size_t made;     /* groups that the agent had not set before */
	size_t removed;  /* groups */
	size_t waiting;  /* groups that are to be removed, and have members */
	char error[512]; /* the first one */
	struct group_names names;
};

struct groupfile {
	/* These are set by the caller. */
	const struct jobs *jobs;
	const char *path;
	void (*made)(void *arg); /* there are new groups */
	void *arg;

	struct dirwatch watch;
	struct work work;
	struct timer next;
	struct backoff backoff;
	bool is_asked;            /* the file has changed while the job ran */
	char said[512];           /* the error that was logged last */
	struct group_names names; /* the groups that the agent has set */
};

int groupfile_open(struct groupfile *g, struct workers *workers);
void groupfile_close(struct groupfile *g);

/* Makes the groups of the file, and removes those of `before` that it does not have. */
void groupfile_job_run(const struct jobs *jobs, const char *path,
		       const struct group_names *before,
		       struct groupfile_report *report);

#endif
