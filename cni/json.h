/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON as Go's decoder reads it: keys in any letter case, the last of several
 * counts, null is the same as absent. The text is checked before cJSON, which is
 * too lenient, reads it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Makes cJSON end the process, with an error object on stdout, when memory is
 * short, so that no caller has to look for holes in what it built. */
void json_init(void);

/* Frees *json; for cleanup_json. */
void json_freep(cJSON **json);
#define cleanup_json __attribute__((cleanup(json_freep)))

/* NULL: there is no such key. JSON's null is found. */
const cJSON *json_member(const cJSON *object, const char *key);
/* NULL: there is no such key, or it is null. */
const cJSON *json_get(const cJSON *object, const char *key);
/* The same for keys that are data, such as names of annotations: their letter
 * case matters. */
const cJSON *json_get_exact(const cJSON *object, const char *key);

/* NULL: not a string. */
const char *json_text(const cJSON *item);
/* A whole number from 0; over 2^64 - 1 is that. -EINVAL: it is none. */
int json_u64(const cJSON *item, uint64_t *ret);

/* A value in a message. Returned by value so that a call fits into a printf. */
struct json_shown {
	char text[80];
};
struct json_shown json_show(const cJSON *item);

/* Numbers of 10^15 and more stay as they are written in plain digits, where
 * cJSON would print an exponent. The text is the caller's to free. */
char *json_print(cJSON *json);

/* As deep as cJSON goes. */
#define JSON_DEPTH_MAX 1000

/* Whether the text, which has a terminator behind its `len` bytes, is one value
 * of RFC 8259; if not, *ret_at is where it ceases to be. */
bool json_check(const char *text, size_t len, size_t *ret_at);

/* Of a text that has been checked and is an object: the value of the last member
 * with this key in any letter case. NULL: there is none. */
const char *json_find_text(const char *text, const char *key, size_t *ret_len);
