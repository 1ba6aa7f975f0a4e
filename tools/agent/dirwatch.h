/* SPDX-License-Identifier: BSD-2-Clause */
/* Notifies of changes in directories. A notification does not say what has changed: the
 * receiver looks at the directories itself, so nothing is missed when the kernel drops
 * events. Only a removal of natra has an event of its own, since afterwards the
 * directories look as if somebody else had removed it. */
#ifndef NATRA_AGENT_DIRWATCH_H
#define NATRA_AGENT_DIRWATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "loop.h"

struct dirwatch {
	struct loop *loop;
	struct source source;
	void (*changed)(void *arg);
	void (*removed)(void *arg);
	void *arg;
	int newest; /* the highest number of a watch; they are not used again */
};

/* A file that is being written changes several times in a row. */
#define DIRWATCH_QUIET_MS 50

/* Changes of a file that nobody has looked at yet. Whoever looks clears it. */
struct unseen {
	bool is_changed;
	uint64_t first_ms;
};

/* The members changed, removed and arg are set by the caller. After an error there are
 * no events, dirwatch_add fails, and the other functions do nothing. */
int dirwatch_open(struct dirwatch *watch, struct loop *loop);
bool dirwatch_is_open(const struct dirwatch *watch);
/* Watches the directory of a descriptor, from now on until it is removed. Returns
 * 1 if it was not watched before, 0 if it was, or -errno. */
int dirwatch_add(struct dirwatch *watch, int dir_fd);
/* Watches the directory in which a file is, if it is there: a file is replaced in it, and the
 * kubelet replaces a link there when a ConfigMap changes. */
void dirwatch_add_file(struct dirwatch *watch, const char *path);
/* Notes a change. Returns whether the look at it is to wait for DIRWATCH_QUIET_MS from now: a
 * directory may change all the time, so it does not wait for ever. */
bool dirwatch_note(struct unseen *unseen);
/* While a watch is paused its events wait: for dirwatch_resume, or for a child
 * process that calls dirwatch_drain. */
void dirwatch_pause(struct dirwatch *watch);
void dirwatch_resume(struct dirwatch *watch);
/* Takes all events that wait. They do not matter to a caller that looks at the
 * directories afterwards. Returns whether one of them is that of a removal of natra. */
bool dirwatch_drain(const struct dirwatch *watch);
void dirwatch_close(struct dirwatch *watch);

#endif
