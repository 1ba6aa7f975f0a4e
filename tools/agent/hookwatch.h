/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Notices that somebody removes natra's programs from the host side of pods, or puts others in
 * front of them, and puts natra's back: AWS's agent does so when it starts, Cilium when it makes
 * an endpoint's programs anew. The kernel tells of filters and qdiscs; links of TCX, of which
 * it does not tell, are looked at now and then.
 *
 * Whoever answers each time has the last word: after a few rounds natra gives up for a while,
 * and says so. What happens on the pod's side is the pod's own doing, and left alone.
 */
#ifndef NATRA_AGENT_HOOKWATCH_H
#define NATRA_AGENT_HOOKWATCH_H

#include "health.h"
#include "hooks_job.h"
#include "jobs.h"
#include "work.h"

struct hookwatch {
	const struct jobs *jobs;
	struct health *health;
	struct source notices;
	/* A look runs beside other jobs, because it may take a minute where very many pods start. A job
	 * that gives places back waits for those that set limits. */
	struct work work;
	enum hooks_task task; /* of the present job */
	struct timer next;
	uint64_t next_ms; /* when it expires, if it is set */
	struct hook_entry *list;
	size_t len;
	bool looks_at_all; /* the next look does */
	bool has_failed;   /* the last job, which was said */
	bool is_strange; /* something changed where no hook of natra's is known */
	uint64_t looked_ms; /* when the last look began */
	/* When the last look at all began, and how long it took; where the next one begins, since there
	 * was no time for more. */
	uint64_t all_looked_ms, all_took_ms;
	uint32_t from_ifindex;
};

/* The members jobs and health are set by the caller. Returns 0 or -errno. */
int hookwatch_open(struct hookwatch *h, struct workers *workers);
void hookwatch_close(struct hookwatch *h);

#endif
