/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/libbpf_log.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"

static _Thread_local struct natra *current;
static libbpf_print_fn_t next_print;
static pthread_once_t installed = PTHREAD_ONCE_INIT;

__attribute__((format(printf, 2, 0))) static int
print(enum libbpf_print_level level, const char *format, va_list args)
{
	cleanup_free char *text = NULL;
	char *rest, *line;

	if (!current)
		return next_print ? next_print(level, format, args) : 0;
	/* An attach makes libbpf print some hundred lines. */
	if (!current->log_fn)
		return 0;
	if (vasprintf(&text, format, args) < 0) {
		text = NULL; /* it is undefined */
		return 0;
	}
	/* The verifier's log is one text of many lines. It is logged for debugging
	 * only, whatever its level: natra's own line says what it means. */
	for (rest = text; (line = strsep(&rest, "\n"));) {
		if (line[0])
			log_line(current, NATRA_LOG_DEBUG, "%s", line);
	}
	return 0;
}

static void install(void)
{
	next_print = libbpf_set_print(print);
}

struct natra *libbpf_log_enter(struct natra *n)
{
	struct natra *before = current;

	(void)pthread_once(&installed, install);
	current = n;
	return before;
}

void libbpf_log_leave(struct natra **before)
{
	current = *before;
}
