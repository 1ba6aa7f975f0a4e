/* SPDX-License-Identifier: BSD-2-Clause */
/* The three standard descriptors. */
#pragma once

#include <stddef.h>

#include "failure.h"

/* Opens those that are closed, so that no file of ours gets their number. What
 * is written to a closed stdout still fails. */
void io_init(void);

/* All there is, with a terminator behind it; the caller's to free. */
int io_read_all(int fd, char **ret_text, size_t *ret_len,
		struct failure *failure);

/* The text and a newline. 0 or -errno. */
int io_write_line(int fd, const char *text);

/* The error object, on stdout. */
void io_print_failure(const struct failure *failure, const char *cni_version);
