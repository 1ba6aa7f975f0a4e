/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/handle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/structs.h"
#include "util/cleanup.h"
#include "util/str.h"

#define LOG_LINE_MAX 1024

int natra_open(struct natra **ret_n, const struct natra_open_opts *opts)
{
	struct natra_open_opts o = {0};
	cleanup_free struct natra *n = NULL;

	if (!ret_n)
		return -EINVAL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	if (opts && struct_in(n, "opts", &o, sizeof(o), opts) < 0)
		return -EINVAL;
	n->log_fn = o.log_fn;
	n->log_arg = o.log_arg;
	n->keep_programs = o.keep_programs;
	if (o.bpffs_path) {
		n->bpffs = strdup(o.bpffs_path);
		if (!n->bpffs)
			return -ENOMEM;
	}
	*ret_n = TAKE_PTR(n);
	return 0;
}

void natra_close(struct natra *n)
{
	if (!n)
		return;
	free(n->bpffs);
	free(n);
}

const char *natra_error(const struct natra *n)
{
	return n ? n->error : "";
}

const char *natra_version(void)
{
	return NATRA_VERSION;
}

/* Through a copy: the arguments may contain the last error. */
__attribute__((format(printf, 2, 0))) static void
set_error(struct natra *n, const char *format, va_list args)
{
	char text[HANDLE_ERROR_MAX];

	(void)vsnprintf(text, sizeof(text), format, args);
	(void)str_copy(n->error, sizeof(n->error), text);
}

int natra_fail(struct natra *n, int r, const char *format, ...)
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

int natra_refuse(struct natra *n, int r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	set_error(n, format, args);
	va_end(args);
	str_one_line(n->error);
	return r;
}

int natra_done(struct natra *n, int r)
{
	if (r == 0)
		n->error[0] = '\0';
	return r;
}

void natra_log(struct natra *n, enum natra_log_level level, const char *format,
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
	n->log_fn(n->log_arg, level, line);
}
