/* SPDX-License-Identifier: BSD-2-Clause */
#include "io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/util/escape.h"
#include "../tools/common/json.h"
#include "../tools/common/stream.h"
#include "../tools/common/text.h"

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

int io_read_all(int fd, char **ret_text, size_t *ret_len,
		struct failure *failure)
{
	int r = stream_read_all(fd, ret_text, ret_len);

	if (r == -EFBIG)
		return failure_set(failure, CNI_DECODE,
				   "the network configuration is over %u bytes",
				   STREAM_MOST_BYTES);
	return r < 0 ? failure_set(failure, CNI_IO,
				   "error reading from stdin: %s", strerror(-r))
		     : 0;
}

int io_write_line(int fd, const char *text)
{
	int r = stream_write(fd, text, strlen(text));

	return r < 0 ? r : stream_write(fd, "\n", 1);
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
