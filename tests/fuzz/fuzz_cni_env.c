/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a runtime's environment, in which the tenant chooses a part of
 * CNI_ARGS: there is no crash, no value can forge a line of the log, and errors
 * are JSON. The values of the input follow one another, each ended by '\0'.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "command.h"
#include "io.h"
#include "json.h"

#define VALUES     5
#define OUTPUT_MAX 65536

/* Requires one line of printable ASCII. */
static void judge_line(const char *text, size_t len)
{
	require(len > 0 && text[len - 1] == '\n');
	for (size_t i = 0; i + 1 < len; i++)
		require(text[i] >= ' ' && text[i] < 0x7f);
}

/* Returns what was written to a file since the last call, and empties the
 * file. */
static size_t take_written(int fd, char *ret, size_t size)
{
	ssize_t len = pread(fd, ret, size, 0);

	require(len >= 0 && ftruncate(fd, 0) == 0 &&
		lseek(fd, 0, SEEK_SET) == 0);
	return (size_t)len;
}

static void judge_log(struct call *call)
{
	static char text[LOG_LINE_MAX + 1];
	struct log_words facts = {0};
	int fd = memfd_create("log", MFD_CLOEXEC);

	require(fd >= 0);
	call->log = (struct log){.path = "/", .fd = fd};
	call->log.level = NATRA_LOG_DEBUG;
	log_add(&call->log.about, "containerid", call->env.container_id);
	log_add(&call->log.about, "ifname", call->env.ifname);
	log_add(&call->log.about, "pod", call->pod);
	log_add(&facts, "netns", call->env.netns);
	log_add(&facts, "args", call->env.args);
	log_line(&call->log, NATRA_LOG_INFO, call->failure.msg, &facts);
	judge_line(text, take_written(fd, text, sizeof(text)));
	log_write(&call->log, NATRA_LOG_INFO, "%s", call->env.args);
	judge_line(text, take_written(fd, text, sizeof(text)));
	log_close(&call->log);
}

static void judge_failure(const struct failure *failure)
{
	static char text[OUTPUT_MAX];
	static int fd = -1;
	size_t len, at = 0;

	/* io_print_failure writes to the standard output. */
	if (fd < 0) {
		fd = memfd_create("stdout", MFD_CLOEXEC);
		require(fd >= 0 && dup2(fd, STDOUT_FILENO) == STDOUT_FILENO);
	}
	io_print_failure(failure, "1.0.0");
	len = take_written(fd, text, sizeof(text) - 1);
	text[len] = '\0';
	judge_line(text, len);
	require(json_check(text, len, &at));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct call call = {.conf = {.name = "net"}};
	const char **values[VALUES] = {
		&call.env.container_id, &call.env.ifname, &call.env.netns,
		&call.env.args,         &call.conf.name,
	};
	char *text = text_of(data, size);
	const char *at = text;
	int r;

	if (!text)
		return 0;
	for (size_t i = 0; i < VALUES; i++) {
		*values[i] = at;
		if (at < text + size)
			at += strlen(at);
		at += at < text + size;
	}
	env_pod(call.env.args, call.pod, sizeof(call.pod));
	r = env_check(&call.env, ENV_CONTAINERID | ENV_NETNS | ENV_IFNAME,
		      &call.failure);
	require((r == 0) == (call.failure.msg[0] == '\0'));
	/* A value that is accepted is not a path. */
	require(r || (!strchr(call.env.container_id, '/') &&
		      !strchr(call.env.ifname, '/') &&
		      strcmp(call.env.ifname, "..") != 0));
	if (call_make_id(&call))
		require(strlen(call.id) <= NATRA_ID_MAX);
	judge_log(&call);
	if (r)
		judge_failure(&call.failure);
	free(text);
	return 0;
}
