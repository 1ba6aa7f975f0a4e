/* SPDX-License-Identifier: BSD-2-Clause */
/* libcni's cache of results: a file for each interface that a runtime has made and
 * not yet removed. */
#ifndef NATRA_PODS_RESULTS_H
#define NATRA_PODS_RESULTS_H

#include <cjson/cJSON.h>

#define RESULTS_DIR "/var/lib/cni/results"

/* `text` is the file's; NULL if it cannot be read. A result other than 0 ends the
 * walk. */
typedef int (*results_fn)(void *arg, const char *file, const char *text);

/* Returns 0, what fn returned, or -errno if the directory cannot be read. */
int results_foreach(int root_fd, results_fn fn, void *arg);
/* Returns the list that a pod was made with, which the caller frees; NULL if it
 * cannot be read. */
cJSON *results_list(const cJSON *result);

#endif
