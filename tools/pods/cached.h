/* SPDX-License-Identifier: BSD-2-Clause */
/* An existing interface of a pod, as libcni's cache of results describes it. */
#ifndef NATRA_PODS_CACHED_H
#define NATRA_PODS_CACHED_H

#include <stdbool.h>
#include <stddef.h>

#include "../common/json.h"

/* The texts point into `json`; those of the pod are "" if the runtime did not say
 * which it is. */
struct cached {
	cJSON *json;
	cJSON *list; /* the list that made the interface */
	const char *container_id, *ifname, *network, *netns;
	const char *pod_namespace, *pod_name, *pod_uid;
};

enum cached_kind {
	CACHED_INTERFACE,
	/* Not of an interface that natra may limit: another program's file, or a result that
	 * only says that Multus was called. */
	CACHED_OTHER,
	/* libcni's, but torn or wrong; what there is of it says which pod it is of. */
	CACHED_UNREADABLE,
};

/* Reads the text of a file in the cache; NULL if that cannot be read. cached_free is needed in
 * each case. */
enum cached_kind cached_read(const char *text, struct cached *ret);
/* Reads only the members that say which pod and which interface it is, which libcni writes before
 * those that a tenant fills: his annotations, in capabilityArgs. The texts are "" if it does not
 * find them. */
void cached_read_head(const char *text, struct cached *ret);
void cached_free(struct cached *cached);

/* Writes the id of its attachment, as the plugin makes it. Returns false if it
 * does not fit. */
bool cached_id(const struct cached *cached, char *ret_id, size_t size);
/* Writes "<namespace>/<pod>", or "". */
void cached_pod(const struct cached *cached, char *ret_pod, size_t size);

#endif
