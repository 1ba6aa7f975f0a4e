/* SPDX-License-Identifier: BSD-2-Clause */
/* Repeats the lines of the plugin's log in the agent's, where `kubectl logs` shows
 * them. The plugin only knows its file, so that no pod waits for the agent. */
#ifndef NATRA_AGENT_PLUGINLOG_H
#define NATRA_AGENT_PLUGINLOG_H

#include <sys/types.h>

#include <cjson/cJSON.h>

#include "../common/log.h"
#include "loop.h"

struct pluginlog {
	struct log *log; /* set by the caller */
	char *file;      /* "": none */
	int root_fd;
	struct loop *loop;
	struct timer timer;
	/* The file that is read, which may have been renamed since; -1: there was
	 * none. */
	int fd;
	off_t at; /* where it has got to */
};

/* Follows the file that natra's configuration `conf` names, below the directory
 * `root`, which may be NULL. Lines that are in the file already are left out. Returns 0 or
 * -errno. */
int pluginlog_open(struct pluginlog *p, const char *root, cJSON *conf,
		   struct loop *loop);
/* Follows the file of another configuration, if it is another one. */
void pluginlog_change(struct pluginlog *p, cJSON *conf);
void pluginlog_close(struct pluginlog *p);

#endif
