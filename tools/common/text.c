/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"

#include <stdio.h>
#include <string.h>

char *text_part(const char *text, size_t len)
{
	return memory_or_end(strndup(text, len));
}

char *text_copy(const char *text)
{
	return text_part(text, strlen(text));
}

char *text_vformat(const char *format, va_list args)
{
	char *text = NULL;

	return memory_or_end(vasprintf(&text, format, args) < 0 ? NULL : text);
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
