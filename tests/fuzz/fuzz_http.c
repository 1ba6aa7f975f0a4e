/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads requests as clients send them to the agent's port: there is no crash, each whole
 * head gets one answer, and the answer does not depend on how the bytes are cut. The input
 * begins with a byte from which the sizes of the parts follow.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* For its functions that are called when a socket is ready. */
#include "../../tools/agent/http.c"
#include "fake_loop.h"
#include "fuzz.h"
#include "../../tools/agent/page_request.h"

#define ANSWER_MAX 8192

static bool
	is_known; /* whether the answer to the request that waits is known */

/* A host that is this machine has no letter that another one needs, and a path with a key is
 * the only one with that key. */
static void read_for_page(const struct http_request *request)
{
	char path[32];
	uint64_t key;

	if (page_is_local(request->host))
		require(strspn(request->host,
			       "localhstLOCALHST127.0[:]3456789") ==
			strlen(request->host));
	if (page_path_of(request->path, &key) == PAGE_POD) {
		(void)snprintf(path, sizeof(path), "/pods/%016" PRIx64, key);
		require(strcmp(path, request->path) == 0);
	}
}

static int answer_fuzzed(void *arg, const struct http_request *request,
			 struct http_body *body)
{
	(void)arg;
	require(request->path[0] == '/' && !strpbrk(request->path, "?# \n"));
	require(!request->accept || !strpbrk(request->accept, "\r\n"));
	require(!request->host || !strpbrk(request->host, "\r\n"));
	read_for_page(request);
	if (request->path[1] == 'l' && !is_known)
		return HTTP_LATER;
	fprintf(body->out, "%s %s %s", request->path,
		request->accept ? request->accept : "",
		request->host ? request->host : "");
	return request->path[1] == 'n' ? 404 : 200;
}

static size_t read_answer(int fd, char *answer, size_t len)
{
	ssize_t n;

	while ((n = recv(fd, answer + len, ANSWER_MAX - len, MSG_DONTWAIT)) > 0)
		len += (size_t)n;
	return len;
}

/* Sends the bytes in parts, all at once if `seed` is 0. Returns the length of the answer. */
static size_t talk(const uint8_t *data, size_t size, unsigned int seed,
		   char *answer)
{
	static struct http http;
	struct http_connection *c = &http.connections[0];
	int ends[2];
	size_t at = 0, len = 0;

	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
	memset(&http, 0, sizeof(http));
	http.answer = answer_fuzzed;
	*c = (struct http_connection){
		.source = {ends[0], connection_ready, c},
		.http = &http,
		.file_fd = -1,
	};
	is_known = false;
	while (at < size && c->source.fd >= 0) {
		size_t part = seed ? 1 + seed % 97 : size;

		seed = seed * 1103515245U + 12345U;
		part = part < size - at ? part : size - at;
		/* The agent closes its end when it has answered. */
		if (send(ends[1], data + at, part, MSG_NOSIGNAL) < 0)
			break;
		at += part;
		if (!c->waiting.path)
			connection_ready(c, EPOLLIN);
		len = read_answer(ends[1], answer, len);
	}
	is_known = true;
	if (c->waiting.path)
		http_resume(&http);
	(void)shutdown(ends[1], SHUT_WR);
	for (int i = 0; i < 4 && c->source.fd >= 0; i++)
		connection_ready(c, EPOLLIN);
	len = read_answer(ends[1], answer, len);
	if (c->source.fd >= 0)
		close_connection(c);
	(void)close(ends[1]);
	return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char once[ANSWER_MAX], parts[ANSWER_MAX];
	size_t len;

	if (size < 2 || size > 2 * HTTP_REQUEST_MAX)
		return 0;
	len = talk(data + 1, size - 1, 0, once);
	require(len == 0 || memcmp(once, "HTTP/1.1 ", 9) == 0);
	require(talk(data + 1, size - 1, 1U + data[0], parts) == len);
	require(memcmp(once, parts, len) == 0);
	return 0;
}
