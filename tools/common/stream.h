/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes descriptors of others, which may be non-blocking. */
#ifndef NATRA_COMMON_STREAM_H
#define NATRA_COMMON_STREAM_H

#include <stddef.h>
#include <sys/types.h>

/* A pod's annotations are under 256 KiB, or six times that when escaped. */
#define STREAM_MOST_BYTES (16U << 20)

/* Reads to the end. The caller frees the text, which has a terminator behind its bytes.
 * Returns 0, -EFBIG or another -errno. */
int stream_read_all(int fd, char **ret_text, size_t *ret_len);
/* Writes all, or returns -errno. */
int stream_write(int fd, const char *text, size_t len);

/* Lets no write of this process wait for who reads the pipe or the terminal: the descriptor
 * is opened anew, so that others who have the same one are not concerned. */
void stream_never_wait(int fd);
/* Writes to a descriptor after stream_never_wait, or to a socket; of at most PIPE_BUF bytes
 * all or nothing. Returns how many bytes were written, or -errno. */
ssize_t stream_try(int fd, const char *text, size_t len);

#endif
