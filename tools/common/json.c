/* SPDX-License-Identifier: BSD-2-Clause */
#include "json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* cJSON prints up to 15 digits without an exponent, Go's encoder up to 21. */
#define FIRST_EXPONENT 1e15
#define LAST_PLAIN     1e21
#define SHOWN_MAX      64
#define U64_LIMIT      18446744073709551616.0 /* 2^64 */

void json_freep(cJSON **json)
{
	cJSON_Delete(*json);
	*json = NULL;
}

static const cJSON *last(const cJSON *object, const char *key,
			 int (*compare)(const char *, const char *))
{
	const cJSON *item, *found = NULL;

	if (!cJSON_IsObject(object))
		return NULL;
	cJSON_ArrayForEach(item, object)
	{
		if (compare(item->string, key) == 0)
			found = item;
	}
	return found;
}

static const cJSON *unless_null(const cJSON *item)
{
	return cJSON_IsNull(item) ? NULL : item;
}

const cJSON *json_member(const cJSON *object, const char *key)
{
	return last(object, key, strcasecmp);
}

const cJSON *json_get(const cJSON *object, const char *key)
{
	return unless_null(json_member(object, key));
}

const cJSON *json_get_exact(const cJSON *object, const char *key)
{
	return unless_null(last(object, key, strcmp));
}

const cJSON *json_find_unknown(const cJSON *object, const char *const *known)
{
	const cJSON *item;

	if (!cJSON_IsObject(object))
		return NULL;
	cJSON_ArrayForEach(item, object)
	{
		const char *const *key = known;

		while (*key && strcasecmp(item->string, *key) != 0)
			key++;
		if (!*key && !cJSON_IsNull(item))
			return item;
	}
	return NULL;
}

const char *json_text(const cJSON *item)
{
	return cJSON_IsString(item) ? item->valuestring : NULL;
}

int json_u64(const cJSON *item, uint64_t *ret)
{
	double value;

	if (!cJSON_IsNumber(item))
		return -EINVAL;
	value = item->valuedouble;
	if (!(value >= 0))
		return -EINVAL;
	if (value >= U64_LIMIT) {
		*ret = UINT64_MAX;
		return 0;
	}
	if ((double)(uint64_t)value != value)
		return -EINVAL;
	*ret = (uint64_t)value;
	return 0;
}

struct json_shown json_show(const cJSON *item)
{
	const char *string = json_text(item);
	char *json = string ? NULL : cJSON_PrintUnformatted(item);
	const char *text = string ? string : json ? json : "?";
	const char *quote = string ? "'" : "";
	struct json_shown shown;

	(void)snprintf(shown.text, sizeof(shown.text), "%s%.*s%s%s", quote,
		       SHOWN_MAX, text, quote,
		       strlen(text) > SHOWN_MAX ? "..." : "");
	cJSON_free(json);
	return shown;
}

static void spell_out(cJSON *item)
{
	double value = item->valuedouble;
	double size = value < 0 ? -value : value;
	char text[32];

	if (size < FIRST_EXPONENT || size >= LAST_PLAIN ||
	    (size < U64_LIMIT && (double)(uint64_t)size != size))
		return;
	(void)snprintf(text, sizeof(text), "%.0f", value);
	item->valuestring = cJSON_malloc(strlen(text) + 1);
	memcpy(item->valuestring, text, strlen(text) + 1);
	item->type = (item->type & ~0xff) | cJSON_Raw;
}

static void spell_out_all(cJSON *json)
{
	cJSON *item;

	if (cJSON_IsNumber(json))
		spell_out(json);
	cJSON_ArrayForEach(item, json) spell_out_all(item);
}

char *json_dump(cJSON *json)
{
	spell_out_all(json);
	return cJSON_PrintUnformatted(json);
}

/* Each of the functions from here on returns the place behind what it scans, or
 * NULL with *bad at what is wrong. None accepts the terminator, so that none
 * reads past it. */

static const char *scan_value(const char *c, int depth, const char **bad);

static const char *wrong(const char *c, const char **bad)
{
	*bad = c;
	return NULL;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static const char *skip_space(const char *c)
{
	while (*c == ' ' || *c == '\t' || *c == '\r' || *c == '\n')
		c++;
	return c;
}

static const char *scan_escape(const char *c, const char **bad)
{
	if (*c == 'u') {
		for (int i = 1; i <= 4; i++) {
			if (!is_hex(c[i]))
				return wrong(c + i, bad);
		}
		return c + 5;
	}
	return *c && strchr("\"\\/bfnrt", *c) ? c + 1 : wrong(c, bad);
}

static const char *scan_string(const char *c, const char **bad)
{
	if (*c++ != '"')
		return wrong(c - 1, bad);
	while (c && *c != '"') {
		if ((unsigned char)*c < 0x20)
			return wrong(c, bad);
		c = *c == '\\' ? scan_escape(c + 1, bad) : c + 1;
	}
	return c ? c + 1 : NULL;
}

static const char *scan_digits(const char *c, const char **bad)
{
	if (!is_digit(*c))
		return wrong(c, bad);
	while (is_digit(*c))
		c++;
	return c;
}

static const char *scan_number(const char *c, const char **bad)
{
	c += *c == '-';
	c = *c == '0' ? c + 1 : scan_digits(c, bad);
	if (c && *c == '.')
		c = scan_digits(c + 1, bad);
	if (c && (*c == 'e' || *c == 'E')) {
		c++;
		c += *c == '+' || *c == '-';
		c = scan_digits(c, bad);
	}
	return c;
}

static const char *scan_word(const char *c, const char *word, const char **bad)
{
	size_t len = strlen(word);

	return strncmp(c, word, len) == 0 ? c + len : wrong(c, bad);
}

/* Scans a key, and goes on to its value. */
static const char *scan_key(const char *c, const char **bad)
{
	c = scan_string(c, bad);
	if (!c)
		return NULL;
	c = skip_space(c);
	return *c == ':' ? skip_space(c + 1) : wrong(c, bad);
}

static const char *scan_list(const char *c, bool is_object, int depth,
			     const char **bad)
{
	char close = is_object ? '}' : ']';

	if (depth >= JSON_DEPTH_MAX)
		return wrong(c, bad);
	c = skip_space(c + 1);
	if (*c == close)
		return c + 1;
	for (;;) {
		if (is_object)
			c = scan_key(c, bad);
		c = c ? scan_value(c, depth + 1, bad) : NULL;
		if (!c)
			return NULL;
		c = skip_space(c);
		if (*c == close)
			return c + 1;
		if (*c != ',')
			return wrong(c, bad);
		c = skip_space(c + 1);
	}
}

static const char *scan_value(const char *c, int depth, const char **bad)
{
	switch (*c) {
	case '{':
	case '[':
		return scan_list(c, *c == '{', depth, bad);
	case '"':
		return scan_string(c, bad);
	case 't':
		return scan_word(c, "true", bad);
	case 'f':
		return scan_word(c, "false", bad);
	case 'n':
		return scan_word(c, "null", bad);
	default:
		return scan_number(c, bad);
	}
}

bool json_check(const char *text, size_t len, size_t *ret_at)
{
	const char *bad = text;
	const char *end = scan_value(skip_space(text), 0, &bad);

	if (end) {
		end = skip_space(end);
		if (end == text + len)
			return true;
		bad = end;
	}
	*ret_at = (size_t)(bad - text);
	return false;
}

static bool is_key(const struct json_member *member, const char *key)
{
	const char *text = member->key;
	size_t len = strlen(key);
	cleanup_json cJSON *decoded = NULL;

	if (member->key_len == len + 2 && strncasecmp(text + 1, key, len) == 0)
		return true;
	if (!memchr(text, '\\', member->key_len))
		return false;
	decoded = cJSON_ParseWithLength(text, member->key_len);
	return cJSON_IsString(decoded) &&
	       strcasecmp(decoded->valuestring, key) == 0;
}

bool json_next(const char **at, struct json_member *ret)
{
	const char *c = skip_space(*at), *bad = c;

	if (*c != '{' && *c != ',')
		return false;
	ret->key = skip_space(c + 1);
	ret->value = scan_key(ret->key, &bad);
	if (!ret->value)
		return false;
	ret->key_len = (size_t)(scan_string(ret->key, &bad) - ret->key);
	c = scan_value(ret->value, 1, &bad);
	ret->is_whole = c;
	ret->len = c ? (size_t)(c - ret->value) : strlen(ret->value);
	*at = c ? c : ret->value + ret->len;
	return true;
}

const char *json_find_text(const char *text, const char *key, size_t *ret_len)
{
	struct json_member member;
	const char *found = NULL;

	while (json_next(&text, &member)) {
		if (!is_key(&member, key))
			continue;
		found = member.value;
		*ret_len = member.len;
	}
	return found;
}

/* Adds the members with these keys, up to the one with the key `last`; NULL: all of them. */
static cJSON *pick(const char *text, const char *const *keys, const char *last)
{
	cJSON *picked = cJSON_CreateObject();
	struct json_member member;

	while (json_next(&text, &member) && member.is_whole) {
		for (size_t i = 0; keys[i]; i++) {
			if (is_key(&member, keys[i]))
				cJSON_AddItemToObject(
					picked, keys[i],
					cJSON_ParseWithLength(member.value,
							      member.len));
		}
		if (last && is_key(&member, last))
			break;
	}
	return picked;
}

cJSON *json_pick(const char *text, const char *const *keys)
{
	return pick(text, keys, NULL);
}

cJSON *json_pick_to(const char *text, const char *const *keys, const char *last)
{
	return pick(text, keys, last);
}
