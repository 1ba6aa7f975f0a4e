/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts that the caller frees, and what a scope frees and closes at its end. */
#ifndef NATRA_COMMON_TEXT_H
#define NATRA_COMMON_TEXT_H

#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "memory.h"

static inline void text_freep(char **text)
{
	free(*text);
}

static inline void text_closep(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

#define cleanup_text  __attribute__((cleanup(text_freep)))
#define cleanup_close __attribute__((cleanup(text_closep)))

/* FNV-1a: for places in a table, where nobody gains by a collision. */
static inline uint64_t text_hash(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3ULL;
	return hash;
}

char *text_copy(const char *text);
char *text_part(const char *text, size_t len);
__attribute__((format(printf, 1, 2))) char *text_format(const char *format,
							...);
__attribute__((format(printf, 1, 0))) char *text_vformat(const char *format,
							 va_list args);

#endif
