/* SPDX-License-Identifier: BSD-2-Clause */
/* Repeats the lines of the plugin's log in the agent's, where `kubectl logs` shows
 * them. The plugin only knows its file, so that no pod waits for the agent. */
#ifndef NATRA_AGENT_PLUGINLOG_H
#define NATRA_AGENT_PLUGINLOG_H

#include <sys/types.h>

#include <cjson/cJSON.h>

#include "../../cni/log.h"
#include "loop.h"

struct pluginlog {
	struct log *log; /* set by the caller */
	const char *file;
	int root_fd;
	struct loop *loop;
	struct timer timer;
	/* Where it has got to in the file; inode 0: there was none. */
	dev_t device;
	ino_t inode;
	off_t at;
};

/* Follows the file that natra's configuration `conf` names, below the directory
 * `root`, which may be NULL. Both must live as long. What is in the file already is
 * left out. Returns 0 or -errno. */
int pluginlog_open(struct pluginlog *p, const char *root, cJSON *conf,
		   struct loop *loop);
void pluginlog_close(struct pluginlog *p);

#endif
