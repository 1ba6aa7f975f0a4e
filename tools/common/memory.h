/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocations that never fail: if memory runs out, the process ends. */
#ifndef NATRA_COMMON_MEMORY_H
#define NATRA_COMMON_MEMORY_H

#include <stddef.h>

/* Sets what the process writes, and to which descriptor, when memory runs out; before this
 * call it is "out of memory" to standard error. `last_words` must stay. From here on cJSON allocates in this
 * way, too, so that no caller has to check whether an addition failed. */
void memory_init(int fd, const char *last_words);

/* The caller frees the result of both. */
void *memory_new(size_t size); /* filled with zeros */
void *memory_grow(void *memory, size_t size);
/* Returns `memory`, what another allocator returned, if it is not NULL. */
void *memory_or_end(void *memory);

#endif
