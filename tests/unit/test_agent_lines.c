/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lines.h"

struct got {
	char text[256];
	size_t count, longest;
	const char *stop; /* the line at which the walk ends */
};

static int take(void *arg, char *line)
{
	struct got *got = arg;
	size_t len = strlen(line), used = strlen(got->text);

	got->count++;
	if (len > got->longest)
		got->longest = len;
	if (used + len + 2 < sizeof(got->text))
		snprintf(got->text + used, sizeof(got->text) - used, "%s|",
			 line);
	return got->stop && strcmp(line, got->stop) == 0 ? 7 : 0;
}

TH_TEST(test_any_parts)
{
	static const char text[] = "one\ntwo\n\n\nthree\nno end";

	for (size_t part = 1; part < sizeof(text); part++) {
		struct lines lines = {0};
		struct got got = {0};

		for (size_t at = 0; at < sizeof(text) - 1; at += part) {
			size_t left = sizeof(text) - 1 - at;

			assert_int_equal(lines_add(&lines, text + at,
						   left < part ? left : part,
						   take, &got),
					 0);
		}
		assert_string_equal(got.text, "one|two|three|");
		lines_reset(&lines);
		assert_null(lines.text);
	}
}

TH_TEST(test_end_of_walk)
{
	struct lines lines = {0};
	struct got got = {.stop = "two"};

	assert_int_equal(lines_add(&lines, "one\ntwo\nthree\n", 14, take, &got),
			 7);
	assert_string_equal(got.text, "one|two|");
	lines_reset(&lines);
}

/* Of a line that is too long there is the beginning, whatever parts it comes in, and the next
 * one is whole. */
TH_TEST(test_too_long)
{
	static const size_t parts[] = {1000, 65536, LINES_MAX, LINES_MAX + 1};
	char *x = malloc(LINES_MAX + 1);

	assert_non_null(x);
	memset(x, 'x', LINES_MAX + 1);
	for (size_t i = 0; i < 4; i++) {
		struct lines lines = {0};
		struct got got = {0};
		size_t at = 0;

		for (; at <= LINES_MAX; at += parts[i])
			assert_int_equal(
				lines_add(&lines, x, parts[i], take, &got), 0);
		assert_true(lines.is_cut);
		assert_int_equal(lines_add(&lines, "x\nnext\n", 7, take, &got),
				 0);
		assert_false(lines.is_cut);
		assert_in_range(got.longest, 1000, LINES_HEAD);
		assert_string_equal(got.text, "next|");
		lines_reset(&lines);
	}
	free(x);
}

TH_TEST(test_longest)
{
	struct lines lines = {0};
	struct got got = {0};
	char *x = malloc(LINES_MAX);

	assert_non_null(x);
	memset(x, 'x', LINES_MAX);
	assert_int_equal(lines_add(&lines, x, LINES_MAX, take, &got), 0);
	assert_int_equal(lines_add(&lines, "\n", 1, take, &got), 0);
	assert_int_equal(got.longest, LINES_MAX);
	/* A long line's memory is not kept. */
	assert_null(lines.text);
	free(x);
}

TH_MAIN(NULL, NULL)
