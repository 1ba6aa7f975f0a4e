/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work that may take long, or much memory, runs in a child process: meanwhile the
 * loop answers probes, a job that hangs is killed, and what it has allocated goes
 * with it. What natra does to directories and to the kernel may be interrupted at
 * any point, so a job may be killed at any point, too.
 */
#ifndef NATRA_AGENT_WORK_H
#define NATRA_AGENT_WORK_H

#include <stddef.h>
#include <sys/types.h>

#include "loop.h"

enum work_end {
	WORK_DONE,   /* the job has ended, and its report is complete */
	WORK_FAILED, /* the job could not be started, or ended half-way */
	WORK_LATE,   /* the job took too long and was killed */
};

struct work;

/* The jobs that run, and those that wait to. */
struct workers {
	struct loop *loop;
	struct work *first, *waiting;
	/* Is called when a job that was killed does not end, since it hangs in the kernel, and when
	 * it has. NULL: do not. */
	void (*stuck)(void *arg, const struct work *work);
	void *arg;
};

/* A kind of job. Only one job of a kind runs at a time. */
struct work {
	struct workers *workers;
	const char *name; /* of what it is about, for the log */
	bool is_view;     /* no pod's limits depend on it */
	/* Runs in the child: it writes to work->report, which both processes
	 * share. All other changes to memory are lost. */
	void (*run)(void *arg);
	/* Runs in the agent when the child has ended. */
	void (*done)(void *arg, enum work_end end);
	void *arg;
	void *report;
	size_t report_size;
	uint64_t time_max_ms;
	/* Only one job of the kinds that set limits runs at a time, so that its
	 * findings about a pod are still true when it acts on them. */
	bool sets_limits;
	struct timer limit;
	pid_t pid; /* 0: it does not run */
	/* A stuck one takes no further step, so that no other job waits for it. */
	bool is_late, is_stuck, is_waiting;
	bool is_reaped; /* others of its process group may be left, which it has started */
	struct work *next;
};

/* Returns 0 or -errno. The other members of *work are set by the caller. */
int work_open(struct work *work, struct workers *workers);
/* Starts a job, with a report of zeros, unless it runs already or waits for another
 * that sets limits. If it cannot be started, done() is called at once. */
void work_start(struct work *work);
/* Ends the job. */
void work_close(struct work *work);
/* Looks which children have ended; call it on SIGCHLD. It also waits for orphans. */
void workers_reap(struct workers *workers);

#endif
