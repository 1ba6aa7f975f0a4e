/* SPDX-License-Identifier: BSD-2-Clause */
/* A small HTTP/1.1 server for probes and metrics: GET only, one request for each
 * connection, and bounds on the number of connections, the size of a request and
 * the time that both may take. libmicrohttpd bounds the time between two bytes only,
 * and takes no connection while it has its most: 20 clients that sent it a byte a second
 * kept a probe out for as long as they liked. */
#ifndef NATRA_AGENT_HTTP_H
#define NATRA_AGENT_HTTP_H

#include <netinet/in.h>
#include <stdio.h>
#include <sys/types.h>

#include "loop.h"

/* When all are taken, the oldest one of the address that has most is closed for a new one, so
 * that clients that hold connections open, or make them fast, keep no probe or scrape out. */
#define HTTP_CONNECTIONS_MAX 16
#define HTTP_REQUEST_MAX     4096
#define HTTP_TIME_MAX_MS     5000

/* The status code of an answer that is not known yet; see http_resume. */
#define HTTP_LATER 0

struct http_request {
	const char *path;
	/* These are headers; NULL: there is none. */
	const char *accept;
	const char *host;
};

struct http_body {
	FILE *out;
	int file_fd; /* -1, or what follows `out`; it is closed when sent */
	const char *type;    /* of the content; NULL: plain text */
	const char *headers; /* more of them, lines; NULL: none */
};

/* Writes the body of the answer to a request and returns its status code, such as
 * 200; 404 means that there is no such path, and then it writes nothing. */
typedef int (*http_answer_fn)(void *arg, const struct http_request *request,
			      struct http_body *body);

struct http_connection {
	struct source source;
	struct http *http;
	struct sockaddr_in6 peer; /* of any family, without its port */
	uint64_t since_ms;
	bool is_answered;
	size_t drained;              /* bytes that came behind the request */
	struct http_request waiting; /* its path is NULL if none waits */
	char in[HTTP_REQUEST_MAX];
	size_t in_len;
	char *out; /* the head and the first part of the body */
	size_t out_len, out_done;
	int file_fd; /* the rest of the body; -1: there is none */
	off_t file_size, file_done;
};

struct http {
	struct loop *loop;
	struct source listener;
	struct timer sweep;
	http_answer_fn answer;
	void *arg;
	const char *socket; /* the path of its socket; NULL: it has a port */
	struct http_connection connections[HTTP_CONNECTIONS_MAX];
};

/* Listens on an address such as "127.0.0.1:9810", "[::1]:9810", "::1:9810" or
 * ":9810", which is all addresses, or on a socket such as "unix:/run/natra.sock",
 * which root alone can open; another kind of file there stays. A port of 0 lets the
 * kernel choose one. Returns 0 or -errno; -EINVAL if the text is no address. The text
 * must stay. */
int http_open(struct http *http, struct loop *loop, const char *address,
	      http_answer_fn answer, void *arg);
/* Asks again for the answers to the requests that wait. */
void http_resume(struct http *http);
/* Returns whether only this machine can reach it. */
bool http_is_local(const struct http *http);
/* Returns the port that it listens on; 0 if it has none. */
unsigned int http_port(const struct http *http);
void http_close(struct http *http);

#endif
