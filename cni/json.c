/* SPDX-License-Identifier: BSD-2-Clause */
#include "json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* cJSON prints 15 digits before it turns to exponents, Go's encoder 21. */
#define FIRST_EXPONENT 1e15
#define LAST_PLAIN     1e21
#define SHOWN_MAX      64
#define U64_LIMIT      18446744073709551616.0 /* 2^64 */

static void *alloc_or_exit(size_t size)
{
	static const char text[] =
		"{\"cniVersion\":\"1.1.0\",\"code\":11,\"msg\":\"out of memory\"}\n";
	void *memory = malloc(size);

	if (!memory) {
		/* Nothing else can be done about a short write. */
		if (write(STDOUT_FILENO, text, sizeof(text) - 1) < 0)
			_exit(EXIT_FAILURE);
		_exit(EXIT_FAILURE);
	}
	return memory;
}

void json_init(void)
{
	cJSON_Hooks hooks = {.malloc_fn = alloc_or_exit, .free_fn = free};

	cJSON_InitHooks(&hooks);
}

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

char *json_print(cJSON *json)
{
	spell_out_all(json);
	return cJSON_PrintUnformatted(json);
}
