/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cjson/cJSON.h>

static int end_fd = STDERR_FILENO;
static const char *end_text = "out of memory\n";

void memory_init(int fd, const char *last_words)
{
	cJSON_Hooks hooks = {.malloc_fn = memory_new, .free_fn = free};

	end_fd = fd;
	end_text = last_words;
	cJSON_InitHooks(&hooks);
}

void *memory_or_end(void *memory)
{
	if (memory)
		return memory;
	/* Nothing can be done if the write fails. */
	if (write(end_fd, end_text, strlen(end_text)) < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_FAILURE);
}

void *memory_new(size_t size)
{
	/* calloc(0) may be NULL. */
	return memory_or_end(calloc(1, size ? size : 1));
}

void *memory_grow(void *memory, size_t size)
{
	return memory_or_end(realloc(memory, size));
}
