/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds out why a pod is not limited, or is limited more than it should be. It
 * looks at the node, at the runtime's lists and at what libcni and natra keep of
 * the pods, and changes nothing. Nothing here prints.
 */
#ifndef NATRA_DOCTOR_DOCTOR_H
#define NATRA_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <natra/natra.h>

#include "../install/install.h"

/* The texts stay the caller's. */
struct doctor_request {
	struct install_request install; /* which directories are looked at */
	const char *bpffs;              /* NULL: that of process 1 */
	const char *agent; /* where natra-agent listens; NULL: the default */
	const char *pod;   /* NULL: all */
};

/* A thing that is wrong, or that a reader may want to know of a pod. */
struct finding {
	const char *check; /* the name of the check that found it */
	char *subject;     /* "node", or a pod or attachment */
	char *text;
	char *mend;   /* a command for a shell */
	bool is_note; /* it is no fault */
};

struct doctor_report {
	struct finding *findings;
	size_t len;
	size_t faults; /* findings that are not notes */
	char *sound;   /* what is said if there is no fault */
	char *error;   /* why nothing could be looked at; NULL: it could */
};

/* Fills in the report, which doctor_free frees. Returns 0 or -errno; then there
 * is an error in the report. */
int doctor_run(struct natra *n, const struct doctor_request *request,
	       struct doctor_report *ret);
void doctor_free(struct doctor_report *report);

/* Returns whether `text` can be an agent's address. */
bool doctor_is_address(const char *text);

#endif
