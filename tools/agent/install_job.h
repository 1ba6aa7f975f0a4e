/* SPDX-License-Identifier: BSD-2-Clause */
/* One look at the runtime's directories by tools/install, and the changes that
 * they need. */
#ifndef NATRA_AGENT_INSTALL_JOB_H
#define NATRA_AGENT_INSTALL_JOB_H

#include "../install/install.h"
#include "dirwatch.h"

#define INSTALL_TEXT_MAX  512
#define INSTALL_NOTES_MAX 8

/* It has no pointers, because the child process writes it. */
struct install_report {
	int r; /* 0: all is as it should be, or would be after the changes */
	bool is_removed; /* natra was uninstalled, and nothing was done */
	char error[INSTALL_TEXT_MAX];
	char net_dir[INSTALL_TEXT_MAX], bin_dir[INSTALL_TEXT_MAX];
	enum install_mode mode;
	char reason[INSTALL_TEXT_MAX];
	size_t changes; /* how many were made, or are needed */
	/* The paths of the first ones, and the first warnings. */
	char paths[INSTALL_NOTES_MAX][INSTALL_TEXT_MAX];
	char warnings[INSTALL_NOTES_MAX][INSTALL_TEXT_MAX];
};

/* Without `apply` it changes nothing. The file element_fd has natra's element then, if others
 * have put it into their list, which may be as long as a list; else it is empty. It takes the events of `watch`, which has to be
 * paused. */
void install_job_run(const struct install_request *request, bool apply,
		     const struct dirwatch *watch, int element_fd,
		     struct install_report *report);

#endif
