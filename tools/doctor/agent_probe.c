/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent_probe.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

#include "../common/text.h"

#define ANSWER_MAX 8192
#define LIMIT_S    2

static int find_address(const char *text, struct addrinfo **ret)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
		.ai_socktype = SOCK_STREAM,
	};
	cleanup_text char *host = text_copy(text);
	char *colon = strrchr(host, ':'), *begin = host;

	if (!colon)
		return -EINVAL;
	*colon = '\0';
	if (host[0] == '[' && colon > host && colon[-1] == ']') {
		colon[-1] = '\0';
		begin++;
	}
	/* An agent that listens on all addresses listens on this one. */
	return getaddrinfo(begin[0] ? begin : "127.0.0.1", colon + 1, &hints,
			   ret)
		       ? -EINVAL
		       : 0;
}

bool agent_is_address(const char *text)
{
	struct addrinfo *found = NULL;

	if (find_address(text, &found) < 0 || !found)
		return false;
	freeaddrinfo(found);
	return true;
}

static int connect_to(const struct addrinfo *address)
{
	const struct timeval limit = {.tv_sec = LIMIT_S};
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	r = connect(fd, address->ai_addr, address->ai_addrlen) < 0 ? -errno : 0;
	if (r < 0)
		(void)close(fd);
	return r < 0 ? r : fd;
}

static time_t now_s(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static int read_body(int fd, char **ret_body)
{
	static const char request[] =
		"GET /readyz HTTP/1.1\r\nHost: natra\r\nConnection: close\r\n\r\n";
	char answer[ANSWER_MAX + 1];
	const char *body;
	const time_t end_s = now_s() + LIMIT_S;
	size_t len = 0;

	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0)
		return -errno;
	while (len < ANSWER_MAX) {
		ssize_t n = recv(fd, answer + len, ANSWER_MAX - len, 0);

		if (n < 0)
			return -errno;
		/* Each byte of a slow answer has a limit of its own. */
		if (now_s() > end_s)
			return -ETIMEDOUT;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	answer[len] = '\0';
	body = strstr(answer, "\r\n\r\n");
	if (!body)
		return -EPROTO;
	*ret_body = text_copy(body + 4);
	return 0;
}

int agent_ask(const char *address, char **ret_body)
{
	struct addrinfo *found = NULL;
	cleanup_close int fd = -1;
	int r = find_address(address, &found);

	if (r < 0 || !found)
		return r;
	fd = connect_to(found);
	freeaddrinfo(found);
	return fd < 0 ? fd : read_body(fd, ret_body);
}
