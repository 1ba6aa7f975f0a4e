/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of namespaces' defaults and maximums, such as a mounted ConfigMap's. It is copied to
 * where the plugin reads it at each ADD, NAMESPACES_FILE below the host's root directory, if
 * nothing in it is wrong: else the copy that is there holds.
 */
#ifndef NATRA_AGENT_NAMESPACEFILE_H
#define NATRA_AGENT_NAMESPACEFILE_H

#include "../common/log.h"
#include "dirwatch.h"

struct namespacefile {
	/* These are set by the caller. */
	const char *path; /* NULL: there is none, and the copy is removed */
	const char *root; /* the host's root directory; NULL: "/" */
	struct log *log;
	void (*changed)(void *arg); /* the copy has changed */
	void *arg;

	struct dirwatch watch;
	struct loop *loop;
	struct timer next;
	char said[640]; /* the error that was logged last */
};

/* Makes the copy before it returns, so that it is there for the first pod. */
int namespacefile_open(struct namespacefile *ns, struct loop *loop);
void namespacefile_close(struct namespacefile *ns);

#endif
