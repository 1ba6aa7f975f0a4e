/* SPDX-License-Identifier: BSD-2-Clause */
#include "splice.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "../common/text.h"

/* All functions here work on a text that has been parsed as JSON, so every
 * string and bracket has its end. */

static const char *skip_space(const char *s)
{
	return s + strspn(s, " \t\r\n");
}

/* Returns the place behind the string at `s`. */
static const char *skip_string(const char *s)
{
	for (s++; *s && *s != '"'; s++) {
		if (*s == '\\' && s[1])
			s++;
	}
	return *s ? s + 1 : s;
}

/* Returns the place behind the value at `s`. */
static const char *skip_value(const char *s)
{
	size_t depth = 0;

	do {
		if (*s == '"') {
			s = skip_string(s);
			continue;
		}
		if (*s == '[' || *s == '{')
			depth++;
		else if (*s == ']' || *s == '}')
			depth--;
		else if (depth == 0)
			return s + strcspn(s, ",]} \t\r\n");
		s++;
	} while (*s && depth);
	return s;
}

/* Returns where the value of the object's only key "plugins" begins; NULL if
 * there is no such key, or several, or if the value is no array. */
static const char *find_plugins(const char *s)
{
	static const char key[] = "\"plugins\"";
	const char *found = NULL;

	s = skip_space(s);
	if (*s != '{')
		return NULL;
	for (s = skip_space(s + 1); *s == '"';) {
		bool is_it = strncmp(s, key, sizeof(key) - 1) == 0;

		s = skip_space(skip_string(s));
		s = skip_space(s + 1); /* the colon */
		if (is_it && found)
			return NULL;
		if (is_it)
			found = s;
		s = skip_space(skip_value(s));
		if (*s == ',')
			s = skip_space(s + 1);
	}
	return found && *found == '[' ? found : NULL;
}

/* Finds where element number `at` begins and ends, or the last one if `at` is
 * negative. Returns false if there is none. */
static bool find_element(const char *s, int at, const char **ret_begin,
			 const char **ret_end)
{
	*ret_begin = NULL;
	s = skip_space(s + 1);
	for (int n = 0; *s && *s != ']'; n++) {
		*ret_begin = s;
		s = skip_value(s);
		*ret_end = s;
		if (n == at)
			return true;
		s = skip_space(s);
		if (*s == ',')
			s = skip_space(s + 1);
	}
	return at < 0 && *ret_begin;
}

/* Returns the line break and the space in front of `s` in its line; one space
 * if something else stands there. */
static char *indent_of(const char *text, const char *s)
{
	const char *line = s;

	while (line > text && (line[-1] == ' ' || line[-1] == '\t'))
		line--;
	if (line > text && line[-1] == '\n')
		return text_format("\n%.*s", (int)(s - line), line);
	return text_copy(" ");
}

char *splice_list(const char *text, const char *element, int at)
{
	const char *list = find_plugins(text), *begin, *end;
	cleanup_text char *indent = NULL;

	if (!list || !find_element(list, at, &begin, &end))
		return NULL;
	if (at >= 0)
		return text_format("%.*s%s%s", (int)(begin - text), text,
				   element, end);
	indent = indent_of(text, begin);
	return text_format("%.*s,%s%s%s", (int)(end - text), text, indent,
			   element, end);
}

char *splice_single(const char *text, const char *name, const char *version,
		    const char *element)
{
	const char *begin = skip_space(text), *end = skip_value(begin);

	return text_format("{\n"
			   "  \"cniVersion\": \"%s\",\n"
			   "  \"name\": \"%s\",\n"
			   "  \"plugins\": [\n"
			   "    %.*s,\n"
			   "    %s\n"
			   "  ]\n"
			   "}\n",
			   version, name, (int)(end - begin), begin, element);
}
