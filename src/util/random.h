/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NATRA_UTIL_RANDOM_H
#define NATRA_UTIL_RANDOM_H

#include <errno.h>
#include <stddef.h>
#include <sys/random.h>

/* Fills memory with random bytes. Returns 0 or -errno, and never -EINTR: a signal may end the wait
 * for the kernel's generator, which is not ready early in a boot. */
static inline int random_fill(void *to, size_t size)
{
	unsigned char *at = to;

	while (size > 0) {
		const ssize_t len = getrandom(at, size, 0);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0)
			return -errno;
		at += len;
		size -= (size_t)len;
	}
	return 0;
}

#endif
