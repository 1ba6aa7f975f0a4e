/* SPDX-License-Identifier: BSD-2-Clause */
/* The texts that natractl writes: quantities with their units, untrusted text,
 * and usage errors. */
#ifndef NATRACTL_OUTPUT_H
#define NATRACTL_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

/* Beside EXIT_SUCCESS and EXIT_FAILURE: the command line is wrong, and the command could
 * look, but what it was asked for is not so. */
enum { EXIT_USAGE = 2, EXIT_NO = 3 };

/* It is returned by value so that a call fits into a printf: the array lives
 * until the end of the full expression. */
struct unit_text {
	char text[32];
};

/* They return "10 Mbit/s", "1.5 kB", "3.25 ms": decimal prefixes and four
 * digits. */
struct unit_text unit_rate(uint64_t bits_per_sec);
/* Returns a rate that is a limit; 0 is "unlimited". */
struct unit_text unit_limit(uint64_t bits_per_sec);
struct unit_text unit_bits(uint64_t bits);
struct unit_text unit_size(uint64_t bytes);
struct unit_text unit_time(uint64_t ns);

/* Prints a text that may come from a pod and carry terminal escapes: what is
 * not printable ASCII is written as \xNN. Pads with spaces up to `width`, and
 * returns the columns taken. */
int print_text(FILE *file, const char *text, int width);
int text_width(const char *text);
/* Writes the text in the same form, cut to what fits into `size` bytes. */
void copy_text(char *to, size_t size, const char *text);

/* Prints one line on stderr, "natractl: WHAT: 'VALUE' ..."; `value` may be
 * NULL. Returns EXIT_USAGE. */
__attribute__((format(printf, 3, 4))) int
usage_error(const char *what, const char *value, const char *format, ...);

#endif
