/* SPDX-License-Identifier: BSD-2-Clause */
/* The jobs that the agent does in the kernel through libnatra; see work.h for where
 * they run. */
#ifndef NATRA_AGENT_JOBS_H
#define NATRA_AGENT_JOBS_H

#include <cjson/cJSON.h>

#include "../common/log.h"
#include "../pods/wish.h"

/* What an edit of a running pod's annotations may do. */
enum edits_rule {
	EDITS_ANY,
	EDITS_LOWER, /* add limits, and lower them */
	EDITS_NONE,
	EDITS_RULES
};

/* The settings that all jobs need. */
struct jobs {
	const char *root; /* the host's root directory; NULL: "/" */
	const char *bpffs;
	/* A bpffs in which pods had their limits before; NULL: there is none. */
	const char *bpffs_before;
	const cJSON *conf; /* the keys of natra's configuration */
	const cJSON *
		namespaces; /* what is in force, see namespacefile.h; NULL: there is none */
	bool adopt;   /* limit pods that run without limits */
	bool replace; /* ... and remove what upstream's plugin left there */
	enum edits_rule edits;
	struct log *log;
};

struct programs_report {
	int r; /* of the loading */
	char error[256];
	size_t removed; /* attachments whose interface was gone */
};

/* Removes what is left of pods that are gone, and loads the programs that pods
 * will need. It enters a network namespace of its own, so the process must not do
 * anything else later. */
void programs_job_run(const struct jobs *jobs, struct programs_report *report);

struct pods_report {
	int r; /* less than 0: the pods could not be looked at */
	char error[256];
	size_t adopted, replaced, upgraded, failed;
	size_t unreadable; /* files in libcni's cache */
	/* Interfaces that lead out of pods that have limits, and that no result names. */
	size_t unnamed;
	size_t later; /* were not looked at, since the time was over */
	/* There was no time for the cached results behind this one, by the hash of its path; 0: for
	 * all. */
	uint64_t last;
};

/* Limits running pods that should have limits and have none, and lets all
 * attachments run the programs of this build. Begins behind the result `after`, the `last` of the
 * run before, if it is still there. Each change has a line in the log. */
void pods_job_run(const struct jobs *jobs, uint64_t after,
		  struct pods_report *report);

/* Opens a handle that keeps programs and logs to jobs->log. */
int jobs_open(const struct jobs *jobs, struct natra **ret_n);

#endif
