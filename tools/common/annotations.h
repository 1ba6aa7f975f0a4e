/* SPDX-License-Identifier: BSD-2-Clause */
/* The annotations of a pod, from an object of JSON to the list that the library takes. */
#ifndef NATRA_COMMON_ANNOTATIONS_H
#define NATRA_COMMON_ANNOTATIONS_H

#include <natra/natra.h>

#include "json.h"

/* Both are Kubernetes' own annotations, whose values runtimes turn into numbers. */
#define ANNOTATION_INGRESS "kubernetes.io/ingress-bandwidth"
#define ANNOTATION_EGRESS  "kubernetes.io/egress-bandwidth"

/* Adds the members of an object, or of NULL (and none of anything else), whose names `wants` accepts; NULL: all. The list
 * points to their texts, and annotations_free is needed. Returns NULL, or a member that is
 * no string. */
const cJSON *annotations_add(struct natra_annotations *list,
			     const cJSON *object,
			     bool (*wants)(const char *name));
void annotations_free(struct natra_annotations *list);

/* Returns the value of an annotation, or NULL. */
const char *annotations_find(const struct natra_annotations *list,
			     const char *name);

#endif
