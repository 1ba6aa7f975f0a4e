/* SPDX-License-Identifier: BSD-2-Clause */
/* The interfaces of a CNI result: those of the node, and those of the pod, which have its
 * network namespace as their sandbox. */
#ifndef NATRA_COMMON_INTERFACES_H
#define NATRA_COMMON_INTERFACES_H

#include <cjson/cJSON.h>

/* Returns the sandbox of a pod's interface; NULL if the result has none. */
const char *interfaces_sandbox(const cJSON *result, const char *ifname);
/* Returns the names of the other interfaces of that sandbox, such as EKS' v4if0, with commas
 * between them, in a text that the caller frees; NULL if there are none. */
char *interfaces_beside(const cJSON *result, const char *ifname);

#endif
