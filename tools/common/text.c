/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

#include <stdio.h>
#include <string.h>

static void *or_end(void *memory)
{
	static const char line[] = "out of memory\n";

	if (memory)
		return memory;
	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		_exit(EXIT_FAILURE);
	_exit(EXIT_FAILURE);
}

void *memory_new(size_t size)
{
	return or_end(calloc(1, size));
}

void *memory_grow(void *memory, size_t size)
{
	return or_end(realloc(memory, size));
}

char *text_part(const char *text, size_t len)
{
	return or_end(strndup(text, len));
}

char *text_copy(const char *text)
{
	return text_part(text, strlen(text));
}

char *text_vformat(const char *format, va_list args)
{
	char *text = NULL;

	return or_end(vasprintf(&text, format, args) < 0 ? NULL : text);
}

char *text_format(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	text = text_vformat(format, args);
	va_end(args);
	return text;
}
