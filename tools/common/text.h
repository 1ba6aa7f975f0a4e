/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocations that never fail: if memory runs out, the process ends. */
#ifndef NATRA_COMMON_TEXT_H
#define NATRA_COMMON_TEXT_H

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cjson/cJSON.h>

static inline void text_freep(char **text)
{
	free(*text);
}

static inline void text_closep(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

static inline void text_json_freep(cJSON **json)
{
	cJSON_Delete(*json);
}

#define cleanup_text  __attribute__((cleanup(text_freep)))
#define cleanup_close __attribute__((cleanup(text_closep)))
#define cleanup_cjson __attribute__((cleanup(text_json_freep)))

/* The caller frees the result of each of these. */
void *memory_new(size_t size); /* filled with zeros */
void *memory_grow(void *memory, size_t size);
char *text_copy(const char *text);
char *text_part(const char *text, size_t len);
__attribute__((format(printf, 1, 2))) char *text_format(const char *format,
							...);
__attribute__((format(printf, 1, 0))) char *text_vformat(const char *format,
							 va_list args);

#endif
