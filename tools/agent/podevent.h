/* SPDX-License-Identifier: BSD-2-Clause */
/* A line of the API server's watch of pods. */
#ifndef NATRA_AGENT_PODEVENT_H
#define NATRA_AGENT_PODEVENT_H

#include <stdbool.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* A static pod's uid is a hash of 32 digits, or what its file says. */
#define PODEVENT_UID_MAX 64

enum podevent_type {
	PODEVENT_GARBAGE, /* it is not JSON, so that bytes are missing */
	PODEVENT_UNREADABLE, /* it lacks what an event has, or that has other types */
	PODEVENT_PRESENT, /* the pod is new, or has changed */
	PODEVENT_GONE,
	PODEVENT_BOOKMARK, /* only `version` is set */
	PODEVENT_EXPIRED,  /* the watch must begin anew */
	PODEVENT_ERROR,    /* only `message` is set */
	PODEVENT_OTHER,    /* of a kind that is not known yet */
};

/* The texts point into the objects, which have what natra needs of the line. A text that is
 * not there, or is none, is ""; also of an event that cannot be read they say what it says. */
struct podevent {
	enum podevent_type type;
	cJSON *json, *status, *meta;
	const char *version; /* the resourceVersion */
	bool is_change;      /* it is of a pod that was there before */
	const char *namespace, *name, *uid;
	/* The uid by which the runtime knows the pod if it is a mirror, which the kubelet makes of a
	 * static pod; "": it is none. A tenant may write that, too. */
	char mirrored[PODEVENT_UID_MAX + 1];
	cJSON *annotations; /* of a pod that is present: those on which limits depend */
	int others; /* annotations that natra does not know, of which it has a few */
	const char *message;
};

/* Reads a line, of which the end may be missing. podevent_free is always needed. */
void podevent_read(struct podevent *ret, const char *line);
void podevent_free(struct podevent *event);

bool podevent_has_names(const struct podevent *event);

/* What a reader of another form needs: an empty event; whether an annotation matters, which
 * then takes over the value; and the names, once they are in `meta`. */
void podevent_init(struct podevent *ret);
bool podevent_wants(const char *name);
void podevent_annotate(struct podevent *event, const char *name, cJSON *value);
void podevent_name(struct podevent *event);

#endif
