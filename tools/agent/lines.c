/* SPDX-License-Identifier: BSD-2-Clause */
#include "lines.h"

#include <string.h>

#include "../common/text.h"

#define SIZE_MIN 16384

/* Leaves the beginning of a line that is too long. */
static void cut(struct lines *lines)
{
	lines->is_cut = true;
	if (lines->len <= LINES_HEAD)
		return;
	lines->len = LINES_HEAD;
	lines->size = LINES_HEAD + 1;
	lines->text = memory_grow(lines->text, lines->size);
	lines->text[lines->len] = '\0';
}

static void keep(struct lines *lines, const char *bytes, size_t len)
{
	const bool is_too_long = lines->len + len > LINES_MAX;

	if (lines->is_cut)
		return;
	if (is_too_long && len > LINES_HEAD)
		len = LINES_HEAD;
	if (lines->len + len + 1 > lines->size) {
		lines->size = 2 * (lines->len + len) + SIZE_MIN;
		lines->text = memory_grow(lines->text, lines->size);
	}
	memcpy(lines->text + lines->len, bytes, len);
	lines->len += len;
	lines->text[lines->len] = '\0';
	if (is_too_long)
		cut(lines);
}

static int finish(struct lines *lines, lines_fn fn, void *arg)
{
	/* An empty line says nothing. */
	int r = lines->len ? fn(arg, lines->text) : 0;

	lines->len = 0;
	lines->is_cut = false;
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
