/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's command line. */
#ifndef NATRA_AGENT_OPTS_H
#define NATRA_AGENT_OPTS_H

#include <stdbool.h>

#include <natra/natra.h>

/* The texts are those of the command line. */
struct options {
	const char *listen; /* "": serve no probes */
	enum natra_log_level log_level;
	const char *bpffs; /* NULL: the library's default */
	bool show_help, show_version;
};

/* Returns 0, or the exit code after it has said on stderr what is wrong. */
int options_read(struct options *ret, int argc, char **argv);
void options_help(void);

#endif
