/* SPDX-License-Identifier: BSD-2-Clause */
/* The state that the parts of an installer share. */
#ifndef NATRA_INSTALL_STATE_H
#define NATRA_INSTALL_STATE_H

#include "../common/dir.h"
#include "install.h"
#include "settings.h"

/* natra's own names in the runtime's directories. */
#define PLUGIN_NAME    "natra"
#define BANDWIDTH_NAME "bandwidth"
#define KEPT_NAME      "bandwidth.before-natra"
#define LIST_PREFIX    "00-natra-"
#define DROPIN_NAME    "90-natra.conf"

/* The plugins of Multus, thin and thick. */
#define MULTUS_NAME      "multus"
#define MULTUS_SHIM_NAME "multus-shim"

struct install {
	const struct install_request *request;
	int root_fd;
	struct dir net, bin;
	struct dir multus; /* where Multus' own list is, if elsewhere */
	struct dir
		place; /* where the lock is, which lock_fd holds; -1: it is not held */
	int lock_fd;
	int plugin_fd;         /* natra's plugin; -1: not needed */
	char *plugin_versions; /* what the plugin answers to VERSION */
	char *plugin_status;   /* why it cannot work here; NULL: it can */
	struct runtimes runtimes;
	struct settings_of_runtime settings;
	char *misplaced; /* how the directories are not the runtime's; NULL: they are */
	bool has_told; /* watchers were notified of the removal, see dir_tell_removal */
	char *error;
};

/* Sets the text of the error and returns r. */
__attribute__((format(printf, 3, 4))) int install_fail(struct install *i, int r,
						       const char *format, ...);

/* Takes the lock of the node's installers, for which it waits 10 s. */
int lock_take(struct install *i);

#endif
