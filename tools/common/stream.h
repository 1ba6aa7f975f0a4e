/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes descriptors of others, which may be non-blocking. */
#ifndef NATRA_COMMON_STREAM_H
#define NATRA_COMMON_STREAM_H

#include <stddef.h>

/* A pod's annotations are under 256 KiB, or six times that when escaped. */
#define STREAM_MOST_BYTES (16U << 20)

/* Reads to the end. The caller frees the text, which has a terminator behind its bytes.
 * Returns 0, -EFBIG or another -errno. */
int stream_read_all(int fd, char **ret_text, size_t *ret_len);
/* Writes all, or returns -errno. */
int stream_write(int fd, const char *text, size_t len);

#endif
