/* SPDX-License-Identifier: BSD-2-Clause */
#include "call_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../../src/util/str.h"

/* Doubles, which cJSON's numbers are, are exact below this. Larger numbers have to be
 * given as strings. */
#define EXACT_BELOW 9007199254740992.0

int call_refuse(struct request *request, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(request->error, sizeof(request->error), format, args);
	va_end(args);
	str_one_line(request->error);
	return -EINVAL;
}

int call_read_known(struct request *request, const char *what,
		    const cJSON *object, const char *const *names)
{
	const cJSON *member;

	cJSON_ArrayForEach(member, object)
	{
		size_t i = 0;

		while (names[i] && strcmp(names[i], member->string) != 0)
			i++;
		if (!names[i])
			return call_refuse(
				request, "%s%s: natractl %s does not know it",
				what, member->string, natra_version());
	}
	return 0;
}

int call_read_text_of(struct request *request, const char *what,
		      const char *name, const cJSON *value,
		      const char **ret_text)
{
	if (!value || cJSON_IsNull(value))
		return 0;
	if (!cJSON_IsString(value))
		return call_refuse(request, "%s%s: is not a string", what,
				   name);
	*ret_text = value->valuestring;
	return 0;
}

int call_read_text(struct request *request, const char *name,
		   const char **ret_text)
{
	return call_read_text_of(
		request, "", name,
		cJSON_GetObjectItemCaseSensitive(request->json, name),
		ret_text);
}

static bool digits_to_u64(const char *text, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!text[0] || text[strspn(text, "0123456789")])
		return false;
	for (; *text; text++) {
		const unsigned int digit = (unsigned int)(*text - '0');

		if (number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return true;
}

int call_read_number_of(struct request *request, const char *what,
			const char *name, const cJSON *value, uint64_t max,
			uint64_t *ret_number)
{
	uint64_t number = 0;
	bool good = false;

	if (!value || cJSON_IsNull(value))
		return 0;
	if (cJSON_IsString(value)) {
		good = digits_to_u64(value->valuestring, &number);
	} else if (cJSON_IsNumber(value) && value->valuedouble >= 0 &&
		   value->valuedouble < EXACT_BELOW) {
		number = (uint64_t)value->valuedouble;
		good = (double)number == value->valuedouble;
	}
	if (!good || number > max)
		return call_refuse(
			request,
			"%s%s: is not a whole number from 0 to %" PRIu64, what,
			name, max);
	*ret_number = number;
	return 0;
}

int call_read_number(struct request *request, const char *name, uint64_t max,
		     uint64_t *ret_number)
{
	return call_read_number_of(
		request, "", name,
		cJSON_GetObjectItemCaseSensitive(request->json, name), max,
		ret_number);
}

int call_read_bool(struct request *request, const char *name, bool *ret_bool)
{
	const cJSON *value =
		cJSON_GetObjectItemCaseSensitive(request->json, name);

	if (!value)
		return 0;
	if (!cJSON_IsBool(value))
		return call_refuse(request, "%s: is neither true nor false",
				   name);
	*ret_bool = cJSON_IsTrue(value);
	return 0;
}

int call_read_texts(struct request *request, const char *what,
		    const cJSON *array, const char ***ret_texts,
		    size_t *ret_len)
{
	const cJSON *item;
	const char **texts;
	size_t len = 0;

	if (!array || cJSON_IsNull(array))
		return 0;
	if (!cJSON_IsArray(array))
		return call_refuse(request, "%s: is not an array", what);
	texts = cJSON_malloc(sizeof(*texts) *
			     ((size_t)cJSON_GetArraySize(array) + 1));
	cJSON_ArrayForEach(item, array)
	{
		if (!cJSON_IsString(item)) {
			cJSON_free(texts);
			return call_refuse(request, "%s: has what is no string",
					   what);
		}
		texts[len++] = item->valuestring;
	}
	*ret_texts = texts;
	*ret_len = len;
	return 0;
}

int call_read_object(struct request *request, const char *name,
		     const cJSON **ret_object)
{
	const cJSON *value =
		cJSON_GetObjectItemCaseSensitive(request->json, name);

	if (value && !cJSON_IsNull(value) && !cJSON_IsObject(value))
		return call_refuse(request, "%s: is not an object", name);
	*ret_object = value && cJSON_IsObject(value) ? value : NULL;
	return 0;
}
