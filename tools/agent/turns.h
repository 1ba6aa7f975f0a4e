/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gives each of many things a time of its own, in a job that walks over all of them: what a pod has
 * done to its interface must not use up the time of the others. The walk runs in a process of its
 * own, which the one that takes too long ends. It begins again with those behind, and at last each
 * that took too long has a process and a longer time for itself.
 *
 * What the walk finds out has to be in memory that processes share.
 */
#ifndef NATRA_AGENT_TURNS_H
#define NATRA_AGENT_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest that one may take beside others, and by itself: then it may wait for a lock twice. */
#define TURN_SHARED_MAX_S 2
#define TURN_MAX_S        20

struct turns {
	struct turns_begun *begun; /* NULL: not open */
	uint64_t only;             /* 0: all */
	uint64_t until_ms;         /* no turn begins later */
	/* The last one that had a turn before the time was over, by the hash of its name; 0: there
	 * was time for all. */
	uint64_t last;
};

/* All turns have to begin within this time. Returns 0 or -errno. */
int turns_open(struct turns *t, uint64_t time_max_ms);
void turns_close(struct turns *t);

/* The walk calls turn_begin before each, by its name, which leaves it out if that returns false, and
 * turn_end after it. */
bool turn_begin(const struct turns *t, const char *name);
/* Gives the one that is at work the longest time from now on, for a step that it has to end. */
void turn_extend(void);
void turn_end(void);

/* Returns what walk() returns, which is run once or more, in other processes; or -errno. Adds to
 * *late how many took too long, or had no time to begin. */
int turns_run(struct turns *t, int (*walk)(void *arg), void *arg, size_t *late);

#endif
