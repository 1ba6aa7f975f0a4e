/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON as Go's decoder reads it: keys in any letter case, the last of several
 * counts, null is the same as absent. The text is checked before cJSON, which is
 * too lenient, reads it. */
#ifndef NATRA_COMMON_JSON_H
#define NATRA_COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

/* Frees *json when a variable with cleanup_json goes out of scope. */
void json_freep(cJSON **json);
#define cleanup_json __attribute__((cleanup(json_freep)))

/* Returns NULL if there is no such key. A value that is JSON's null is returned. */
const cJSON *json_member(const cJSON *object, const char *key);
/* Returns NULL if there is no such key or its value is JSON's null. */
const cJSON *json_get(const cJSON *object, const char *key);
/* Does the same for keys that are data, such as names of annotations, whose
 * letter case matters. */
const cJSON *json_get_exact(const cJSON *object, const char *key);

/* Returns a member, other than null, whose key is none of `known`, which ends in NULL;
 * NULL if there is none. */
const cJSON *json_find_unknown(const cJSON *object, const char *const *known);

/* Returns NULL if the item is not a string. */
const char *json_text(const cJSON *item);
/* Reads a whole number from 0; one over 2^64 - 1 counts as that. Returns
 * -EINVAL if it is none. */
int json_u64(const cJSON *item, uint64_t *ret);

/* A value as a message shows it. It is returned by value so that a call fits
 * into a printf. */
struct json_shown {
	char text[80];
};
struct json_shown json_show(const cJSON *item);

/* Prints JSON, with plain digits for numbers from 10^15 on, where cJSON would
 * print an exponent. The caller frees the text. */
char *json_dump(cJSON *json);

/* The depth that cJSON accepts. */
#define JSON_DEPTH_MAX 1000

/* Returns whether the text, which has a terminator behind its `len` bytes, is
 * one value by RFC 8259. If it is not, *ret_at is the place of the first wrong
 * byte. */
bool json_check(const char *text, size_t len, size_t *ret_at);

/* A member of an object, as it was written. */
struct json_member {
	const char *key; /* with its quotes */
	size_t key_len;
	const char *value;
	size_t len;
	bool is_whole;
};

/* Walks over the members of an object without a copy of it. *at is the text of the object at
 * first, which may end anywhere: then the last member's value is what there is of it. Returns
 * false behind the last one, or where the text is no object. */
bool json_next(const char **at, struct json_member *ret);

/* Finds the text of a value as it was written: that of the last member with
 * this key, in any letter case, of a text that is an object, which may end anywhere. Returns
 * NULL if there is none. */
const char *json_find_text(const char *text, const char *key, size_t *ret_len);
/* Returns an object, which the caller frees, of the members with these keys that are whole in
 * such a text. `keys` ends in NULL. */
cJSON *json_pick(const char *text, const char *const *keys);
/* Does so without a look at what follows the first member with the key `last`. */
cJSON *json_pick_to(const char *text, const char *const *keys,
		    const char *last);

#endif
