/* SPDX-License-Identifier: BSD-2-Clause */
/* A line of the API server's watch of pods. */
#ifndef NATRA_AGENT_PODEVENT_H
#define NATRA_AGENT_PODEVENT_H

#include <stdint.h>

#include <cjson/cJSON.h>

enum podevent_type {
	PODEVENT_GARBAGE,
	PODEVENT_PRESENT, /* the pod is new, or has changed */
	PODEVENT_GONE,
	PODEVENT_BOOKMARK, /* only `version` is set */
	PODEVENT_EXPIRED,  /* the watch must begin anew */
	PODEVENT_ERROR,    /* only `message` is set */
	PODEVENT_OTHER,    /* of a kind that is not known yet */
};

/* The texts point into `json`. */
struct podevent {
	enum podevent_type type;
	cJSON *json;
	const char *version; /* the resourceVersion */
	const char *namespace, *name, *uid;
	const cJSON *annotations; /* NULL: it has none */
	const char *message;
};

/* podevent_free is always needed. */
void podevent_read(struct podevent *ret, const char *line);
void podevent_free(struct podevent *event);

/* Returns a copy of those annotations on which limits depend, which the caller
 * frees: an object that may be empty. */
cJSON *podevent_relevant(const cJSON *annotations);
/* Returns a hash of the text. */
uint64_t podevent_hash(const char *text);

#endif
