/* SPDX-License-Identifier: BSD-2-Clause */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/util/escape.h"
#include "../tools/common/json.h"
#include "../tools/common/text.h"

#define FIRST_BYTES 16384
/* A pod's annotations are under 256 KiB, or six times that when escaped. */
#define MOST_BYTES  (16U << 20)

void io_init(void)
{
	int fd;

	/* If the reader goes away, write(2) fails, which is reported. */
	(void)signal(SIGPIPE, SIG_IGN);
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		(void)close(fd);
}

/* Returns whether to try again: the call was interrupted, or the descriptor is
 * non-blocking and is ready now. */
static bool may_go_on(int fd, short events)
{
	struct pollfd pollfd = {.fd = fd, .events = events};

	if (errno == EAGAIN)
		(void)poll(&pollfd, 1, -1);
	return errno == EAGAIN || errno == EINTR;
}

int io_read_all(int fd, char **ret_text, size_t *ret_len,
		struct failure *failure)
{
	size_t size = FIRST_BYTES, len = 0;
	char *text = memory_new(size);
	ssize_t r;

	for (;;) {
		r = read(fd, text + len, size - 1 - len);
		if (r < 0 && may_go_on(fd, POLLIN))
			continue;
		if (r <= 0)
			break;
		len += (size_t)r;
		if (len + 1 < size)
			continue;
		if (size >= MOST_BYTES) {
			free(text);
			return refuse(
				failure, CNI_DECODE,
				"the network configuration is over %u bytes",
				MOST_BYTES);
		}
		size *= 2;
		text = memory_grow(text, size);
	}
	if (r < 0) {
		int error = errno;

		free(text);
		return refuse(failure, CNI_IO, "error reading from stdin: %s",
			      strerror(error));
	}
	text[len] = '\0';
	*ret_text = text;
	*ret_len = len;
	return 0;
}

static int write_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t r = write(fd, text, len);

		if (r < 0 && may_go_on(fd, POLLOUT))
			continue;
		if (r < 0)
			return -errno;
		text += r;
		len -= (size_t)r;
	}
	return 0;
}

int io_write_line(int fd, const char *text)
{
	int r = write_all(fd, text, strlen(text));

	return r < 0 ? r : write_all(fd, "\n", 1);
}

/* A message may quote input, which need not be UTF-8. */
static void add_plain(cJSON *object, const char *key, const char *text)
{
	cleanup_text char *plain = memory_new(strlen(text) * 4 + 1);
	char *to = plain;

	for (; *text; text++)
		to = stpcpy(to, escape_byte(*text).text);
	cJSON_AddStringToObject(object, key, plain);
}

void io_print_failure(const struct failure *failure, const char *cni_version)
{
	cleanup_json cJSON *json = cJSON_CreateObject();
	cleanup_text char *text = NULL;

	cJSON_AddStringToObject(json, "cniVersion", cni_version);
	cJSON_AddNumberToObject(json, "code", failure->code);
	add_plain(json, "msg", failure->msg);
	if (failure->details[0])
		add_plain(json, "details", failure->details);
	text = cJSON_PrintUnformatted(json);
	(void)io_write_line(STDOUT_FILENO, text);
}
