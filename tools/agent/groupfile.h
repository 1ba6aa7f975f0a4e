/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of groups, such as a mounted ConfigMap's:
 *
 *   {"node": {"egressRate": "10G"}, "blue": {"egressRate": "1G", "parent": "node"}}
 *
 * A group of the file has the limits that it has there. When a group disappears from the
 * file while the agent runs, it is removed as soon as it has no member. A file or a group
 * that is wrong is logged, and changes nothing; the other groups of the file are set.
 */
#ifndef NATRA_AGENT_GROUPFILE_H
#define NATRA_AGENT_GROUPFILE_H

#include "backoff.h"
#include "dirwatch.h"
#include "health.h"
#include "jobs.h"
#include "work.h"

struct group_names {
	size_t len;
	char list[NATRA_GROUPS_MAX][NATRA_GROUP_NAME_MAX + 1];
};

struct groupfile_report {
	bool is_read;  /* the file; without it nothing has changed */
	size_t failed; /* groups, or the file itself */
	size_t made; /* groups that the agent had not set, or that were gone */
	size_t removed;  /* groups */
	size_t waiting;  /* groups that are to be removed, and have members */
	char error[512]; /* the first one */
	/* The groups that the agent has set, a parent before those that were set after it.
	 * Those that are to be removed come last. */
	struct group_names names;
};

struct groupfile {
	/* These are set by the caller. */
	const struct jobs *jobs;
	const char *path;
	struct health *health;
	void (*made)(void *arg); /* there are new groups */
	void *arg;

	struct dirwatch watch;
	struct work work;
	struct timer next;
	struct backoff backoff;
	struct unseen unseen;
	bool was_read;            /* the file, since the agent began */
	char said[640];           /* the error that was logged last */
	struct group_names names; /* those of the last report */
};

int groupfile_open(struct groupfile *g, struct workers *workers);
/* Sets the groups soon, also those that the file has had before. */
void groupfile_ask(struct groupfile *g);
void groupfile_close(struct groupfile *g);

/* Adds a name that is not there yet. One that does not fit is one that the library
 * refuses. */
void groupfile_add_name(struct group_names *names, const char *name);

/* Makes the groups of the file, and removes those of `before` that it does not have. */
void groupfile_job_run(const struct jobs *jobs, const char *path,
		       const struct group_names *before,
		       struct groupfile_report *report);

#endif
