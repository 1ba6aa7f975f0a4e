/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of namespaces' defaults and maximums, such as a mounted ConfigMap's. What was read of it
 * last, if nothing in it was wrong, is in force: for running pods as it was parsed, and for those
 * that start by a copy where the plugin reads it at each ADD, NAMESPACES_FILE below the host's
 * root directory. An agent that starts beside a wrong file takes the copy.
 */
#ifndef NATRA_AGENT_NAMESPACEFILE_H
#define NATRA_AGENT_NAMESPACEFILE_H

#include <cjson/cJSON.h>

#include "../common/log.h"
#include "dirwatch.h"
#include "health.h"

struct namespacefile {
	/* These are set by the caller. */
	const char *path; /* NULL: there is none */
	const char *root; /* the host's root directory; NULL: "/" */
	struct log *log;
	struct health *health;
	/* Other rules are in force, or pods that start have a copy now. */
	void (*changed)(void *arg);
	void *arg;

	cJSON *rules; /* NULL: none could be read yet */
	char *text;   /* ... of them */
	bool has_copy;
	struct dirwatch watch;
	struct loop *loop;
	struct timer next;
	struct unseen unseen;
	char said[640]; /* the error that was logged last */
};

/* Makes the copy before it returns, so that it is there for the first pod. */
int namespacefile_open(struct namespacefile *ns, struct loop *loop);
void namespacefile_close(struct namespacefile *ns);

/* Returns whether limits of running pods are known not to be over a maximum. */
bool namespacefile_is_read(const struct namespacefile *ns);
/* Returns whether pods that start get what was read. */
bool namespacefile_is_copied(const struct namespacefile *ns);
/* Empties the copy of an agent that had a file, if this one has none. It stays, for lists that make the
 * plugin need it, such as those that somebody has copied. */
void namespacefile_forget(struct namespacefile *ns);

#endif
