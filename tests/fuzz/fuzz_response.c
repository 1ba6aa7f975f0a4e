/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads what a server answers, by libcurl, over a real connection: there is no crash, the
 * request ends once, and only the body of 200 is given on. The input begins with a byte from
 * which the sizes of the parts follow.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../../tools/agent/api.h"
#include "../../tools/agent/lines.h"
#include "../../tools/agent/podevent.h"
#include "../../tools/common/memory.h"
#include "fuzz.h"

static struct loop loop = LOOP_INIT;
static struct api api;
static struct lines lines;
static int listener = -1, ended;
static size_t given;

static void open_all(void)
{
	static char url[64];
	static struct api_options options = {.token_file = "", .ca_file = ""};
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(address);

	memory_init(STDERR_FILENO, "out of memory\n");
	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	require(bind(listener, (struct sockaddr *)&address, len) == 0);
	require(listen(listener, 4) == 0);
	require(getsockname(listener, (struct sockaddr *)&address, &len) == 0);
	snprintf(url, sizeof(url), "http://127.0.0.1:%u",
		 ntohs(address.sin_port));
	options.url = url;
	require(loop_open(&loop) == 0);
	require(api_open(&api, &loop, &options) == 0);
}

/* Handles what is ready; waits so long for the first event. */
static void step(int wait_ms)
{
	struct epoll_event event;

	while (epoll_wait(loop.epoll_fd, &event, 1, wait_ms) == 1) {
		const struct source *source = event.data.ptr;

		source->ready(source->arg, event.events);
		wait_ms = 0;
	}
}

static int line(void *arg, char *text)
{
	struct podevent event;

	(void)arg;
	podevent_read(&event, text);
	podevent_free(&event);
	return 0;
}

static int data_came(void *arg, const char *bytes, size_t len)
{
	require(api_status(arg) == 200);
	given += len;
	return lines_add(&lines, bytes, len, line, NULL);
}

static void request_done(void *arg, long status, const char *error)
{
	(void)arg;
	(void)status;
	(void)error;
	ended++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct linger reset = {.l_onoff = 1};
	struct api_request request = {.data = data_came, .done = request_done};
	unsigned int seed;
	int fd = -1;

	if (size < 2)
		return 0;
	if (listener < 0)
		open_all();
	request.arg = &request;
	seed = data[0];
	ended = 0;
	given = 0;
	require(api_start(&api, &request, "/x", NULL, 2000) == 0);
	for (int i = 0; i < 50 && fd < 0; i++) {
		step(i ? 1 : 0);
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	}
	require(fd >= 0);
	step(0);
	for (size_t at = 1; at < size && !ended;) {
		size_t part = 1 + seed % 257;

		seed = seed * 1103515245U + 12345U;
		part = part < size - at ? part : size - at;
		if (send(fd, data + at, part, MSG_NOSIGNAL) < 0)
			break;
		at += part;
		step(0);
	}
	(void)shutdown(fd, SHUT_WR);
	for (int i = 0; i < 20 && !ended; i++)
		step(1);
	require(ended <= 1 && given < size);
	api_cancel(&api, &request);
	lines_reset(&lines);
	/* No port waits for the end of a connection that was closed in time. */
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	(void)close(fd);
	step(0);
	return 0;
}
