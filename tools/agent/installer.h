/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps natra installed. A job looks at the runtime's directories when the agent
 * starts, when something in them changes, and now and then. It repairs what somebody
 * else has undone, but only a limited number of times in a stretch of time: if a
 * program undoes it again and again, the agent logs that and stops for a while. Once
 * natra itself was uninstalled, it stops for good.
 */
#ifndef NATRA_AGENT_INSTALLER_H
#define NATRA_AGENT_INSTALLER_H

#include "budget.h"
#include "dirwatch.h"
#include "health.h"
#include "install_job.h"
#include "work.h"

struct installer {
	struct log *log;
	struct health *health;
	const struct install_request *request;
	/* Called when natra was installed or repaired, because pods may have
	 * started without it before, and when `element` has changed. NULL: do
	 * not. */
	void (*completed)(void *arg);
	/* Called when natra was uninstalled. */
	void (*removed)(void *arg);
	void *arg;
	struct budget repairs;
	struct dirwatch watch;
	struct work work;
	struct timer next; /* when to look again */
	uint64_t retry_ms; /* 0: the last look did not fail */
	uint64_t last_end_ms;
	bool is_complete; /* natra was installed once since the start */
	bool has_changed; /* ... or repaired, and `completed` was not called yet */
	bool may_apply;  /* what the job that runs is allowed to do */
	bool is_asked;   /* something has changed while the job ran */
	bool is_removed; /* natra was uninstalled since the start */
	/* Looks that changed something, those that failed, and how often
	 * something was changed that somebody else had undone. */
	uint64_t written, failures, repaired;
	char said[INSTALL_TEXT_MAX]; /* the mode's reason, as it was logged */
	/* natra's element in the list of others, as the last look has found it; NULL or "": it
	 * has none. A job leaves it in a file without a name. */
	char *element;
	int element_fd;
};

/* The members log to repairs are set by the caller. Returns 0
 * or -errno, and the first look follows in the loop. */
int installer_open(struct installer *in, struct workers *workers);
void installer_close(struct installer *in);

#endif
