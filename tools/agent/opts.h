/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's command line. */
#ifndef NATRA_AGENT_OPTS_H
#define NATRA_AGENT_OPTS_H

#include <stdbool.h>

#include <natra/natra.h>

#include "../install/install.h"
#include "../metrics/families.h"
#include "budget.h"
#include "jobs.h"
#include "live.h"

/* The texts are those of the command line. */
struct options {
	const char *listen;  /* "": serve no probes */
	bool no_page;        /* serve no page for a person on `listen` */
	const char *metrics; /* "": serve metrics beside the probes only */
	struct families_options families;
	enum natra_log_level log_level;
	const char *bpffs; /* NULL: the library's default */
	bool no_install;
	struct install_request install;
	cJSON *conf; /* that of `install` */
	struct budget repairs;
	const char *groups;     /* the file of groups; NULL: none */
	const char *namespaces; /* see namespaces.h; NULL: none */
	bool no_pods;           /* leave the kernel alone */
	bool no_adopt;
	bool replace_bandwidth;
	enum edits_rule edits;
	uint64_t period_ms; /* between two looks at the running pods */
	struct live_options live;
	char url[300]; /* live.url, if it is made from the environment */
	bool show_help, show_version;
};

/* Returns 0, or the exit code after it has said on stderr what is wrong. */
int options_read(struct options *ret, int argc, char **argv);
void options_free(struct options *o);
void options_help(void);

#endif
