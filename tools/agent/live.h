/* SPDX-License-Identifier: BSD-2-Clause */
/* Live edits: limits follow the annotations of running pods. */
#ifndef NATRA_AGENT_LIVE_H
#define NATRA_AGENT_LIVE_H

#include "health.h"
#include "jobs.h"
#include "work.h"

struct live_options {
	const char *node; /* "": no live edits */
	const char *url, *token_file, *ca_file;
	/* That of the kubelet's pods API, below the host's root directory; "": the API
	 * server says which pods there are. */
	const char *kubelet_socket;
	uint64_t
		silence_ms; /* of the API server, after which it is asked anew */
};

struct live;

/* Returns 0 or -errno; -EOPNOTSUPP if the agent was built without libcurl. *jobs is
 * read for each job and must stay. */
int live_open(struct live **ret, const struct live_options *options,
	      const struct jobs *jobs, struct health *health,
	      struct workers *workers);
/* Begins to watch once the configuration is known: with another one, a limit would be
 * taken away. Later calls do nothing. */
void live_begin(struct live *live);
/* Compares the limits of all pods with their annotations again. */
void live_again(struct live *live);
/* `live` may be NULL in all three. */
void live_close(struct live *live);

#endif
