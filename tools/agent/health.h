/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the agent and whether each is ready, as /readyz reports. */
#ifndef NATRA_AGENT_HEALTH_H
#define NATRA_AGENT_HEALTH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "../common/log.h"
#include "budget.h"

enum part {
	PART_INSTALL,  /* the plugin is installed and a list calls it */
	PART_PROGRAMS, /* the BPF programs are loaded */
	PART_PODS,     /* pods that ran before have been looked at */
	PART_NAMESPACES, /* the file of namespaces was read once, and the plugin reads it */
	PART_GROUPS, /* the file of groups was read once */
	PART_JOBS,   /* none of those on which limits depend hangs */
	PART_API,    /* the API server is watched */
	PART_MAX
};

struct health {
	struct log *log;
	struct {
		bool is_on; /* the agent has this to do */
		bool is_ready;
		char why[256]; /* why it is not; "" before it is known */
		char note[64]; /* of single pods; "": none */
	} parts[PART_MAX];
	uint64_t refused_edits;  /* since the start */
	uint64_t followed_edits; /* ... that changed the limits of a pod */
	uint64_t lost_events;    /* ... of those that reporter.h sends */
	uint64_t failed_pods;    /* of the last look at all of them */
	uint64_t
		hook_repairs; /* places on hooks that were given back, since the start */
	uint64_t contested_hooks; /* ... and are not any more */
	/* Events of pods that could not be read since the agent began, and files of libcni's
	 * cache that could not at the last look. */
	uint64_t unreadable_events;
	struct budget unreadable_said; /* ... in the log */
	size_t unreadable_results;
	size_t unnamed_interfaces; /* see jobs.h; of the last look, too */
	bool has_results;          /* the last look was at the cache, too */
	/* What is in force is older than the file, which cannot be read or copied. */
	bool old_namespaces;
	size_t stuck_jobs;    /* were killed and do not end */
	size_t stuck_views;   /* ... of these, on which no limits depend */
	size_t failed_groups; /* of the file */
	bool unreadable_groups_file;
};

void health_init(struct health *health, struct log *log);
/* The part counts from now on. It is not ready yet. */
void health_expect(struct health *health, enum part part);
/* Both log a line if something has changed. */
void health_ready(struct health *health, enum part part);
__attribute__((format(printf, 4, 5))) void
health_fail(struct health *health, enum part part, enum natra_log_level level,
	    const char *format, ...);

/* Says what of single pods is wrong, or "", in the answer only: what one tenant can cause must
 * not make the node unready. */
__attribute__((format(printf, 3, 4))) void
health_note(struct health *health, enum part part, const char *format, ...);

/* Counts an event that cannot be read, and logs it unless there are many. */
void health_unreadable_event(struct health *health, const char *namespace,
			     const char *pod, const char *why);

/* Returns whether a pod that starts now gets its limits. The API server is not
 * needed for that. */
bool health_is_ready(const struct health *health);
/* Returns the word for a part. */
const char *health_part_name(enum part part);
/* Answers for the paths /healthz and /readyz; see http.h. */
int health_answer(const struct health *health, const char *path, FILE *body);

#endif
