/* SPDX-License-Identifier: BSD-2-Clause */
#include "json_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

void json_add_u64(cJSON *object, const char *key, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	cJSON_AddRawToObject(object, key, text);
}

/* Returns how many bytes the character at `s` has; 0 if it is not UTF-8
 * (overlong, a surrogate, cut off or beyond U+10FFFF). */
static size_t utf8_length(const unsigned char *s)
{
	static const uint32_t lowest[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t code;
	size_t len;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xf8 || s[0] < 0xc0)
		return 0;
	len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
	code = s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3fu);
	}
	if (code < lowest[len] || code > 0x10ffff ||
	    (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return len;
}

void json_add_text(cJSON *object, const char *key, const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	const unsigned char *in = (const unsigned char *)text;
	char *clean = memory_new(strlen(text) * 3 + 1);
	char *out = clean;

	while (*in) {
		size_t len = utf8_length(in);

		if (len == 0) {
			memcpy(out, replacement, 3);
			out += 3;
			in++;
			continue;
		}
		memcpy(out, in, len);
		out += len;
		in += len;
	}
	*out = '\0';
	cJSON_AddStringToObject(object, key, clean);
	free(clean);
}
