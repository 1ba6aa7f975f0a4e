/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/handle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/str.h"

#define LOG_LINE_MAX 1024

/* Sets the error text by way of a copy, since the arguments may contain the
 * text of the last error. */
__attribute__((format(printf, 2, 0))) static void
set_error(struct natra *n, const char *format, va_list args)
{
	char text[HANDLE_ERROR_MAX];

	(void)vsnprintf(text, sizeof(text), format, args);
	(void)str_copy(error_room(n), sizeof(n->error), text);
}

int fail_errno(struct natra *n, int r, const char *format, ...)
{
	va_list args;
	size_t len;

	va_start(args, format);
	set_error(n, format, args);
	va_end(args);
	len = strlen(n->error);
	/* strerrordesc_np is thread-safe, strerror is not. */
	(void)snprintf(n->error + len, sizeof(n->error) - len, ": %s",
		       strerrordesc_np(-r) ? strerrordesc_np(-r)
					   : "unknown error");
	str_one_line(n->error);
	return r;
}

int refuse(struct natra *n, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_error(n, format, args);
	va_end(args);
	str_one_line(n->error);
	return with_field(n, r);
}

int with_code(struct natra *n, enum natra_code code, int r)
{
	n->code = code;
	return r;
}

int with_name(struct natra *n, enum natra_code code, const char *name, int r)
{
	(void)str_copy(n->about, sizeof(n->about), name);
	return with_code(n, code, r);
}

int with_field(struct natra *n, int r)
{
	const size_t len = strcspn(n->error, ":");

	if (r != -EINVAL)
		return r;
	(void)snprintf(n->about, sizeof(n->about), "%.*s", (int)len, n->error);
	return with_code(n, NATRA_CODE_FIELD, r);
}

char *error_room(struct natra *n)
{
	n->code = NATRA_CODE_NONE;
	n->about[0] = '\0';
	return n->error;
}

void forget_error(struct natra *n)
{
	error_room(n)[0] = '\0';
}

const char *last_error(const struct natra *n)
{
	return n->error;
}

struct kept_error keep_error(struct natra *n)
{
	struct kept_error kept = {.n = n, .code = n->code};

	(void)str_copy(kept.text, sizeof(kept.text), n->error);
	(void)str_copy(kept.about, sizeof(kept.about), n->about);
	return kept;
}

void restore_error(struct kept_error *kept)
{
	if (!kept->n)
		return;
	(void)str_copy(kept->n->error, sizeof(kept->n->error), kept->text);
	(void)str_copy(kept->n->about, sizeof(kept->n->about), kept->about);
	kept->n->code = kept->code;
}

bool begin_call(struct natra *n)
{
	if (n)
		forget_error(n);
	return n;
}

int finish(struct natra *n, int r)
{
	if (r >= 0)
		forget_error(n);
	return r;
}

int finish_walk(struct natra *n, int r)
{
	return r ? r : finish(n, 0);
}

struct held_line {
	struct held_line *next;
	enum natra_log_level level;
	char text[];
};

/* Without memory the line is lost. */
static void hold_line(struct natra *n, enum natra_log_level level,
		      const char *text)
{
	const size_t size = strlen(text) + 1;
	struct held_line *line = malloc(sizeof(*line) + size);

	if (!line)
		return;
	line->next = NULL;
	line->level = level;
	memcpy(line->text, text, size);
	*n->held_end = line;
	n->held_end = &line->next;
}

void log_hold(struct natra *n)
{
	if (n->log_holds++ == 0)
		n->held_end = &n->held;
}

void log_release(struct natra *n)
{
	struct held_line *line = n->held;

	if (--n->log_holds)
		return;
	n->held = NULL;
	while (line) {
		struct held_line *next = line->next;

		n->log_fn(n->log_arg, line->level, line->text);
		free(line);
		line = next;
	}
}

void log_line(struct natra *n, enum natra_log_level level, const char *format,
	      ...)
{
	char line[LOG_LINE_MAX];
	va_list args;

	if (!n->log_fn)
		return;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	str_one_line(line);
	if (n->log_holds)
		hold_line(n, level, line);
	else
		n->log_fn(n->log_arg, level, line);
}
