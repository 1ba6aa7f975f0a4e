/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Watches this node's pods at the API server. The watch begins at "any" version, so the
 * server first reports all existing pods one by one, and the agent need not hold a
 * list. These come in the order of their names, each with a version of its own, so that no such
 * version says that older pods were sent. A bookmark does, or the change of a pod, which the server
 * sends behind all of them. A watch that breaks after that resumes from the last version that it has
 * seen; one that breaks before, or whose version the server has forgotten, begins anew. An event that
 * cannot be read keeps nobody from those behind it: it is left out, and if bytes of it are missing
 * the watch begins anew a moment later.
 */
#ifndef NATRA_AGENT_PODWATCH_H
#define NATRA_AGENT_PODWATCH_H

#include <stdbool.h>

#include "api.h"
#include "backoff.h"
#include "lines.h"
#include "podfeed.h"

#define PODWATCH_VERSION_MAX 64

struct podwatch {
	struct api *api;
	struct podfeed *feed;
	struct log *log;
	const char *node;
	uint64_t silence_ms; /* after a silence this long it begins anew */
	struct api_request request;
	struct lines lines;
	struct backoff backoff;
	struct timer timer; /* to begin again, or to look whether it is alive */
	uint64_t since_ms;
	uint64_t heard_ms; /* when the server has sent something, or it began */
	size_t unreadable_count; /* events since it began */
	bool is_torn; /* bytes of an event were missing, so that `resync` is set */
	struct timer resync;
	struct backoff resyncs;
	char version[PODWATCH_VERSION_MAX]; /* "": begin anew */
	bool is_whole; /* the server has sent all pods that there were at `version` */
	/* The server has refused to begin with bookmarks: it needs an etcd that reports
	 * its progress for the two together. */
	bool is_plain;
	char why[256]; /* why the agent itself has ended the watch; or "" */
};

/* The members api to silence_ms are set by the caller. */
int podwatch_open(struct podwatch *w);
void podwatch_begin(struct podwatch *w);
/* Lets the server report all pods again. */
void podwatch_again(struct podwatch *w);
void podwatch_close(struct podwatch *w);

#endif
