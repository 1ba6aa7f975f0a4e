/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the programs loaded and the running pods limited: when the agent starts,
 * when the installation was completed or repaired, and now and then. */
#ifndef NATRA_AGENT_KEEPER_H
#define NATRA_AGENT_KEEPER_H

#include "health.h"
#include "jobs.h"
#include "pinwatch.h"
#include "work.h"

struct keeper {
	struct jobs jobs;
	struct health *health;
	uint64_t period_ms;
	/* Is called when the limits of the running pods, and groups, are no more where
	 * natra finds them. NULL: do not. */
	void (*lost)(void *arg);
	void *arg;
	struct pinwatch pins;
	struct work programs, pods;
	struct timer next;
	uint64_t retry_ms;      /* 0: the last look did not fail */
	uint64_t after;         /* of the next look, see pods_job_run */
	bool programs_are_well; /* they were loaded at the last look */
	bool is_asked; /* pods may have started without limits meanwhile */
};

/* The members jobs to arg are set by the caller. */
int keeper_open(struct keeper *k, struct workers *workers);
/* Looks at the running pods soon. */
void keeper_ask(struct keeper *k);
void keeper_close(struct keeper *k);

#endif
