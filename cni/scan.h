/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON as text: what cJSON is too lenient for, and the bytes of a value as they
 * were written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* As deep as cJSON goes. */
#define SCAN_DEPTH_MAX 1000

/* Whether the text, which has a terminator behind its `len` bytes, is one value
 * of RFC 8259; if not, *ret_at is where it ceases to be. */
bool scan_check(const char *text, size_t len, size_t *ret_at);

/* Of a text that has been checked and is an object: the value of the last member
 * with this key in any letter case. NULL: there is none. */
const char *scan_member(const char *text, const char *key, size_t *ret_len);
