/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells when something changes in directories. It says no more than that: who is
 * told looks at the directories themselves, so nothing is missed when the kernel
 * drops events. */
#ifndef NATRA_AGENT_DIRWATCH_H
#define NATRA_AGENT_DIRWATCH_H

#include "loop.h"

struct dirwatch {
	struct loop *loop;
	struct source source;
	void (*changed)(void *arg);
	void *arg;
	int newest; /* the highest number of a watch; they are not used again */
};

int dirwatch_open(struct dirwatch *watch, struct loop *loop,
		  void (*changed)(void *), void *arg);
/* Watches the directory of a descriptor, from now on until it is removed. Returns
 * 1 if it was not watched before, 0 if it was, or -errno. */
int dirwatch_add(struct dirwatch *watch, int dir_fd);
void dirwatch_close(struct dirwatch *watch);

#endif
