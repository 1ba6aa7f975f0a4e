/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NATRA_UTIL_STR_H
#define NATRA_UTIL_STR_H

#include <stdbool.h>
#include <stddef.h>

/* Copies a string and terminates it. Returns false if it did not fit and was
 * cut. NULL is copied as "". */
bool str_copy(char *to, size_t size, const char *from);

/* Replaces control characters by '?', so that a line stays one line. */
static inline void str_one_line(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++) {
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
	}
}

#endif
