/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading from stdin and writing to stdout. */
#ifndef NATRA_CNI_IO_H
#define NATRA_CNI_IO_H

#include <stddef.h>

#include "failure.h"

/* Opens those of the three standard descriptors that are closed, so that no
 * file of the plugin's gets their numbers. Writing to a closed stdout still
 * fails. */
void io_init(void);

/* Reads to the end. The text has a terminator behind it; the caller frees it. */
int io_read_all(int fd, char **ret_text, size_t *ret_len,
		struct failure *failure);

/* Writes the text and a newline. Returns 0 or -errno. */
int io_write_line(int fd, const char *text);

/* Prints the error object on stdout. */
void io_print_failure(const struct failure *failure, const char *cni_version);

#endif
