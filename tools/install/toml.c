/* SPDX-License-Identifier: BSD-2-Clause */
#include "toml.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../common/json.h"
#include "../common/text.h"

/* How deep values may be in each other. */
#define DEPTH_MAX 64

struct reader {
	const char *c;
	size_t line;
};

/* Goes on behind space, comments and, if `lines` is set, ends of lines. */
static void skip(struct reader *r, bool lines)
{
	for (;; r->c++) {
		if (*r->c == '#')
			r->c += strcspn(r->c, "\n");
		if (*r->c == '\n' && lines)
			r->line++;
		else if (!*r->c || !strchr(" \t\r", *r->c))
			return;
	}
}

/* Goes on behind this text, if it is there. */
static bool take(struct reader *r, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(r->c, text, len) != 0)
		return false;
	r->c += len;
	return true;
}

static char *read_escape(struct reader *r, char *out)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	const char *found = *r->c ? strchr(from, *r->c) : NULL;

	if (!found)
		return NULL;
	r->c++;
	*out++ = to[found - from];
	return out;
}

/* A line break behind a backslash, and the space behind it, are no part of the text. */
static bool take_folded(struct reader *r)
{
	size_t len = strspn(r->c, " \t\r");

	if (r->c[len] != '\n')
		return false;
	while (*r->c && strchr(" \t\r\n", *r->c))
		r->line += *r->c++ == '\n';
	return true;
}

/* Reads what is in front of this mark, behind which it goes on. Returns NULL if that is no
 * text. */
static char *read_until(struct reader *r, const char *end)
{
	bool is_long = end[1], has_escapes = end[0] == '"';
	char *text = memory_new(strlen(r->c) + 1), *out = text;
	bool is_closed = false;

	if (is_long && (take(r, "\n") || take(r, "\r\n")))
		r->line++;
	while (out && *r->c && !(is_closed = take(r, end))) {
		if (has_escapes && *r->c == '\\') {
			r->c++;
			if (!is_long || !take_folded(r))
				out = read_escape(r, out);
		} else if (*r->c == '\n' && !is_long) {
			out = NULL;
		} else {
			r->line += *r->c == '\n';
			*out++ = *r->c++;
		}
	}
	if (out && is_closed)
		return text;
	free(text);
	return NULL;
}

static char *read_text(struct reader *r)
{
	static const char *const marks[] = {"\"\"\"", "'''", "\"", "'"};

	for (size_t n = 0; n < sizeof(marks) / sizeof(marks[0]); n++) {
		if (take(r, marks[n]))
			return read_until(r, marks[n]);
	}
	return NULL;
}

static char *read_key(struct reader *r)
{
	size_t len = 0;
	char *key;

	if (*r->c == '"' || *r->c == '\'')
		return read_text(r);
	while (isalnum((unsigned char)r->c[len]) || r->c[len] == '_' ||
	       r->c[len] == '-')
		len++;
	if (!len)
		return NULL;
	key = text_part(r->c, len);
	r->c += len;
	return key;
}

/* Returns the table of this name in another one, and makes it if there is none; of an
 * array of tables the last one. Returns NULL if the name is that of something else. */
static cJSON *open_table(cJSON *table, const char *key)
{
	cJSON *found = cJSON_GetObjectItemCaseSensitive(table, key);

	if (!found)
		return cJSON_AddObjectToObject(table, key);
	if (cJSON_IsArray(found))
		found = cJSON_GetArrayItem(found,
					   cJSON_GetArraySize(found) - 1);
	return cJSON_IsObject(found) ? found : NULL;
}

/* Reads a dotted key. Returns the table that its last part is in, and that part, which the
 * caller frees; NULL if it is none. */
static cJSON *read_path(struct reader *r, cJSON *table, char **ret_key)
{
	*ret_key = NULL;
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		char *key;

		skip(r, false);
		key = read_key(r);
		skip(r, false);
		if (!key || !table || *r->c != '.') {
			*ret_key = key;
			return key ? table : NULL;
		}
		r->c++;
		table = open_table(table, key);
		free(key);
	}
	return NULL;
}

static cJSON *read_value(struct reader *r, int depth);

static bool read_pair(struct reader *r, cJSON *table, int depth)
{
	cleanup_text char *key = NULL;
	cJSON *value;

	table = read_path(r, table, &key);
	if (!table || cJSON_GetObjectItemCaseSensitive(table, key) ||
	    !take(r, "="))
		return false;
	skip(r, false);
	value = read_value(r, depth);
	return value && cJSON_AddItemToObject(table, key, value);
}

/* Reads what is in an array or an inline table, behind its first bracket. */
static cJSON *read_items(struct reader *r, cJSON *items, const char *end,
			 int depth)
{
	cleanup_json cJSON *owned = items;

	for (;;) {
		skip(r, true);
		if (take(r, end)) {
			owned = NULL;
			return items;
		}
		if (cJSON_IsObject(items)) {
			if (!read_pair(r, items, depth))
				return NULL;
		} else if (!cJSON_AddItemToArray(items, read_value(r, depth))) {
			return NULL;
		}
		skip(r, true);
		if (*r->c != *end && !take(r, ","))
			return NULL;
	}
}

static cJSON *read_word(struct reader *r)
{
	size_t len = strcspn(r->c, " \t\r\n,]}#");
	cleanup_text char *word = text_part(r->c, len);
	char *end;
	double number;

	if (!len || strspn(word, "0123456789abcdefghijklmnopqrstuvwxyz"
				 "ABCDEFGHIJKLMNOPQRSTUVWXYZ+-._:") != len)
		return NULL;
	r->c += len;
	if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
		return cJSON_CreateBool(word[0] == 't');
	number = strtod(word, &end);
	return *end ? cJSON_CreateString(word) : cJSON_CreateNumber(number);
}

static cJSON *read_value(struct reader *r, int depth)
{
	cleanup_text char *text = NULL;

	if (depth == DEPTH_MAX)
		return NULL;
	if (take(r, "["))
		return read_items(r, cJSON_CreateArray(), "]", depth + 1);
	if (take(r, "{"))
		return read_items(r, cJSON_CreateObject(), "}", depth + 1);
	if (*r->c != '"' && *r->c != '\'')
		return read_word(r);
	text = read_text(r);
	return text ? cJSON_CreateString(text) : NULL;
}

/* Reads a header, behind its first bracket. Returns its table; NULL if it is none. */
static cJSON *read_header(struct reader *r, cJSON *root)
{
	bool is_array = take(r, "[");
	cleanup_text char *key = NULL;
	cJSON *table = read_path(r, root, &key), *array;

	if (!table || !take(r, is_array ? "]]" : "]"))
		return NULL;
	if (!is_array)
		return open_table(table, key);
	array = cJSON_GetObjectItemCaseSensitive(table, key);
	if (!array)
		array = cJSON_AddArrayToObject(table, key);
	if (!cJSON_IsArray(array))
		return NULL;
	table = cJSON_CreateObject();
	cJSON_AddItemToArray(array, table);
	return table;
}

cJSON *toml_read(const char *text, size_t *ret_line)
{
	cleanup_json cJSON *root = cJSON_CreateObject();
	struct reader r = {text, 1};
	cJSON *table = root;

	for (skip(&r, true); *r.c && table; skip(&r, true)) {
		if (take(&r, "["))
			table = read_header(&r, root);
		else if (!read_pair(&r, table, 0))
			table = NULL;
		if (!table)
			break;
		skip(&r, false);
		if (*r.c && *r.c != '\n')
			table = NULL;
	}
	*ret_line = r.line;
	if (!table)
		return NULL;
	table = root;
	root = NULL;
	return table;
}
