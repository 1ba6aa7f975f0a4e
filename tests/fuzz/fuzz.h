/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the fuzzers share. */
#ifndef NATRA_TESTS_FUZZ_H
#define NATRA_TESTS_FUZZ_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts unless the condition holds, also where assert() is compiled out. */
static inline void require(int condition)
{
	if (!condition)
		abort();
}

/* Returns the input as a string in its own memory, so that ASan sees a read
 * past the terminator; free() it. Returns NULL without memory. */
static inline char *text_of(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return NULL;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

#endif
