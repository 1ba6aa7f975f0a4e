/* SPDX-License-Identifier: BSD-2-Clause */
#include "page_request.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* 64 bits in hex. */
#define KEY_LEN 16

static bool read_key(const char *text, uint64_t *ret_key)
{
	if (strlen(text) != KEY_LEN ||
	    strspn(text, "0123456789abcdef") != KEY_LEN)
		return false;
	*ret_key = strtoull(text, NULL, 16);
	return true;
}

enum page_path page_path_of(const char *path, uint64_t *ret_key)
{
	static const char pods[] = "/pods";
	const size_t len = sizeof(pods) - 1;

	if (strcmp(path, "/") == 0)
		return PAGE_HTML;
	if (strcmp(path, pods) == 0)
		return PAGE_PODS;
	if (strncmp(path, pods, len) == 0 && path[len] == '/' &&
	    read_key(path + len + 1, ret_key))
		return PAGE_POD;
	return PAGE_NONE;
}

static bool is_port(const char *text)
{
	return !*text || (text[0] == ':' && text[1] &&
			  !text[1 + strspn(text + 1, "0123456789")]);
}

/* The agent may listen on each address of 127.0.0.0/8. */
static bool is_loopback(const char *text, size_t len)
{
	char copy[INET_ADDRSTRLEN] = "";
	struct in_addr address;

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	return inet_pton(AF_INET, copy, &address) == 1 &&
	       ntohl(address.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool page_is_local(const char *host)
{
	static const char *const names[] = {"localhost", "[::1]"};
	const size_t part = host ? strcspn(host, ":") : 0;

	for (size_t i = 0; host && i < sizeof(names) / sizeof(names[0]); i++) {
		const size_t len = strlen(names[i]);

		if (strncasecmp(host, names[i], len) == 0)
			return is_port(host + len);
	}
	return host && is_loopback(host, part) && is_port(host + part);
}
