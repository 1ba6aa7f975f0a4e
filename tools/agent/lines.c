/* SPDX-License-Identifier: BSD-2-Clause */
#include "lines.h"

#include <string.h>

#include "../common/text.h"

#define SIZE_MIN 16384

static void keep(struct lines *lines, const char *bytes, size_t len)
{
	if (lines->is_skipping)
		return;
	if (lines->len + len > LINES_MAX) {
		lines->dropped++;
		lines->is_skipping = 1;
		return;
	}
	if (lines->len + len + 1 > lines->size) {
		lines->size = 2 * (lines->len + len) + SIZE_MIN;
		lines->text = memory_grow(lines->text, lines->size);
	}
	memcpy(lines->text + lines->len, bytes, len);
	lines->len += len;
	lines->text[lines->len] = '\0';
}

static int finish(struct lines *lines, lines_fn fn, void *arg)
{
	int r = 0;

	/* An empty line says nothing. */
	if (!lines->is_skipping && lines->len)
		r = fn(arg, lines->text);
	lines->len = 0;
	lines->is_skipping = 0;
	/* A long line is rare. */
	if (lines->size > 4 * SIZE_MIN) {
		free(lines->text);
		lines->text = NULL;
		lines->size = 0;
	}
	return r;
}

int lines_add(struct lines *lines, const char *bytes, size_t len, lines_fn fn,
	      void *arg)
{
	while (len) {
		const char *end = memchr(bytes, '\n', len);
		size_t part = end ? (size_t)(end - bytes) : len;
		int r = 0;

		keep(lines, bytes, part);
		if (end)
			r = finish(lines, fn, arg);
		if (r)
			return r;
		part += end != NULL;
		bytes += part;
		len -= part;
	}
	return 0;
}

void lines_reset(struct lines *lines)
{
	free(lines->text);
	*lines = (struct lines){0};
}
