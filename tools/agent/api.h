/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to the API server, by libcurl in the agent's loop. */
#ifndef NATRA_AGENT_API_H
#define NATRA_AGENT_API_H

#include <stddef.h>

#include "loop.h"

struct api_options {
	const char *url;        /* "https://10.96.0.1:443" */
	const char *token_file; /* read for each request, because it expires */
	const char *ca_file;
};

struct api {
	struct loop *loop;
	const struct api_options *options;
	void *multi; /* CURLM */
	struct timer timer;
};

/* One kind of request. Only one request of a kind is under way at a time. */
struct api_request {
	/* Receives a part of the body. Returns 0, or another number to end the
	 * request. NULL: the body does not matter. */
	int (*data)(void *arg, const char *bytes, size_t len);
	/* Is called at the end, unless api_cancel was called. `status` is
	 * HTTP's, 0 if there was no answer; `error` is "" or says what is wrong
	 * with the connection. It may start the request again. */
	void (*done)(void *arg, long status, const char *error);
	void *arg;
	void *easy; /* CURL; NULL: it is not under way */
	void *headers;
	char *body;
	char error[256];
};

int api_open(struct api *api, struct loop *loop,
	     const struct api_options *options);
void api_close(struct api *api);

/* Starts a request of a path such as "/api/v1/pods"; with a body, which is copied,
 * it is a POST of JSON. It ends after `time_max_ms`. If it cannot be started,
 * done() is not called. Returns 0 or -errno. */
int api_start(struct api *api, struct api_request *request, const char *path,
	      const char *body, long time_max_ms);
/* Returns HTTP's status so far; 0 before there is one. */
long api_status(const struct api_request *request);
void api_cancel(struct api *api, struct api_request *request);

#endif
