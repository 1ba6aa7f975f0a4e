/* SPDX-License-Identifier: BSD-2-Clause */
/* The caches of libcni's results: a file for each interface that was made and not yet
 * removed, by a runtime or by Multus, which keeps those of its own calls elsewhere. */
#ifndef NATRA_PODS_RESULTS_H
#define NATRA_PODS_RESULTS_H

#include <stdbool.h>

#include <cjson/cJSON.h>

#define RESULTS_DIR "/var/lib/cni/results"

/* `text` is the text of the file at `path`, or the beginning of one over 16 MiB; NULL if it
 * cannot be read. A result other than 0 ends the walk. */
typedef int (*results_fn)(void *arg, const char *path, const char *text);

/* Returns whether the file, of which this is the beginning, is to be read whole. */
typedef bool (*results_wants_fn)(const void *arg, const char *head);

/* Returns 0, what fn returned, or -errno if a directory cannot be read: -ENOENT if the
 * runtime's does not exist. */
int results_foreach(int root_fd, results_fn fn, void *arg);
/* Leaves out those of which `wants` returns false: a tenant's annotations, which libcni keeps
 * behind the head, make a file of up to 3 MB. */
int results_foreach_wanted(int root_fd, results_wants_fn wants, results_fn fn,
			   void *arg);
/* Does so for the files that have the id of a container in their names, as libcni gives them:
 * at least its own. */
int results_foreach_of(int root_fd, const char *container_id, results_fn fn,
		       void *arg);
/* Returns the list that a pod was made with, which the caller frees; NULL if it
 * cannot be read. */
cJSON *results_list(const cJSON *result);

#endif
