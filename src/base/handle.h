/* SPDX-License-Identifier: BSD-2-Clause */
/* The handle: options, the last error, the log. */
#ifndef NATRA_BASE_HANDLE_H
#define NATRA_BASE_HANDLE_H

#include <natra/natra.h>

#define HANDLE_ERROR_MAX 512

struct natra {
	char *bpffs; /* NULL until place_find() has found it */
	natra_log_fn log_fn;
	void *log_arg;
	bool keep_programs;
	struct netns_index *netns_index; /* set during natra_gc only */
	char error[HANDLE_ERROR_MAX];
};

/*
 * Sets the error text and returns r. The place which knows the most calls it;
 * callers above hand r on unchanged. A negative errno is added as text.
 */
__attribute__((format(printf, 3, 4))) int fail_errno(struct natra *n, int r,
						     const char *format, ...);

/* The same without the errno's text: the line says it all. */
__attribute__((format(printf, 3, 4))) int refuse(struct natra *n, int r,
						 const char *format, ...);

/* Returns the error text: that of the last failure, or "". */
const char *last_error(const struct natra *n);

/* Returns r, the result of a public function. If it is 0, clears the error
 * text, which may tell of something that was tried on the way and failed. */
int finish(struct natra *n, int r);

__attribute__((format(printf, 3, 4))) void
log_line(struct natra *n, enum natra_log_level level, const char *format, ...);

#endif
