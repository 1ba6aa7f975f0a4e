/* SPDX-License-Identifier: BSD-2-Clause */
/* The job of hookwatch.h: finds attachments that have lost their place on the host side, and
 * gives it back. */
#ifndef NATRA_AGENT_HOOKS_JOB_H
#define NATRA_AGENT_HOOKS_JOB_H

#include "jobs.h"

/* No node has as many. Those beyond this are not watched. */
#define HOOKS_MAX 4096

/* A host-side interface with programs of natra's, by its index. */
struct hook_entry {
	uint32_t ifindex;
	bool is_dirty;   /* something changed there */
	bool is_asked;   /* ... of which the job is to find out what */
	bool is_missing; /* the last look did not find natra's place there */
	bool may_restore;
	bool is_given_up;
	uint32_t rounds; /* how often its place was given back */
	uint64_t last_ms;
	uint32_t vain_looks; /* in a row: it had its place all the same */
	uint64_t asked_ms;   /* when the last look for a change began */
};

enum hook_state {
	HOOK_UNKNOWN, /* not looked at, or it could not be */
	HOOK_WELL,
	HOOK_MISSING, /* it has no place, or is being attached again just now */
	HOOK_RESTORED,
	HOOK_LOST, /* ... and not given back */
};

struct hook_report {
	uint32_t ifindex;
	uint32_t state; /* enum hook_state */
	bool has_begun;
};

struct hooks_report {
	int r;
	char error[256];
	/* There was no time for this interface, and for those behind it; 0: for all. */
	uint32_t next_ifindex;
	size_t len;
	struct hook_report list[HOOKS_MAX];
};

enum hooks_task {
	HOOKS_LOOK, /* at the entries that are asked for, and at interfaces that are in none */
	HOOKS_LOOK_AT_ALL,
	HOOKS_RESTORE, /* the entries that are missing, if they still are */
};

struct hooks_order {
	enum hooks_task task;
	struct hook_entry *list;
	size_t len;
	uint32_t from_ifindex; /* begins there, if it is still there */
};

/* Returns the entry of an interface; NULL if it has none. */
struct hook_entry *hook_find(struct hook_entry *list, size_t len,
			     uint32_t ifindex);

void hooks_job_run(const struct jobs *jobs, const struct hooks_order *order,
		   struct hooks_report *report);

#endif
