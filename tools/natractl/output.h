/* SPDX-License-Identifier: BSD-2-Clause */
/* What natractl writes: units, untrusted text, errors. */
#pragma once

#include <stdint.h>
#include <stdio.h>

enum { EXIT_USAGE = 2 };

/* Returned by value so that a call fits into a printf: the array lives until
 * the end of the full expression. */
struct unit_text {
	char text[32];
};

/* "10 Mbit/s", "1.5 kB", "3.25 ms": decimal, four digits. */
struct unit_text unit_rate(uint64_t bits_per_sec);
/* A rate as a limit: 0 is "unlimited". */
struct unit_text unit_limit(uint64_t bits_per_sec);
struct unit_text unit_size(uint64_t bytes);
struct unit_text unit_time(uint64_t ns);
struct unit_text unit_count(uint64_t count);

/* Names come from pods and may carry terminal escapes: whatever is not
 * printable ASCII is written as \xNN. Returns the columns taken; pads with
 * spaces up to `width`. */
int print_text(FILE *file, const char *text, int width);
int text_width(const char *text);

/* One line on stderr, "natractl: WHAT: 'VALUE' ..."; value may be NULL. Returns
 * EXIT_USAGE. */
__attribute__((format(printf, 3, 4))) int
usage_error(const char *what, const char *value, const char *format, ...);
