/* SPDX-License-Identifier: BSD-2-Clause */
/* Cuts a stream into lines. Only the line that is not complete yet is kept. */
#ifndef NATRA_AGENT_LINES_H
#define NATRA_AGENT_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* The plugin reads as much. The API server takes no object over 1.5 MiB, in which Go's
 * JSON writes some characters in six bytes. */
#define LINES_MAX  (16 * 1024 * 1024)
/* As much is kept of a longer line, whose beginning names the event's pod. */
#define LINES_HEAD 65536

struct lines {
	char *text;
	size_t len, size;
	bool is_cut; /* the line is too long */
};

/* Receives a line without its end, with a terminator, which it may change; if `is_cut` is
 * set, only its beginning. A result other than 0 ends the walk. */
typedef int (*lines_fn)(void *arg, char *line);

/* Adds bytes and calls fn for each line that is complete. Returns 0 or what fn
 * returned; what is behind that line is lost. */
int lines_add(struct lines *lines, const char *bytes, size_t len, lines_fn fn,
	      void *arg);
/* Forgets the incomplete line, and gives its memory back. */
void lines_reset(struct lines *lines);

#endif
