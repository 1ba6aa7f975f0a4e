/* SPDX-License-Identifier: BSD-2-Clause */
#include "name.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

const char *name_wrong(const char *name)
{
	if (!is_alnum(*name))
		return "does not begin with a letter or a digit";
	for (; *name; name++) {
		if (!is_alnum(*name) && !strchr("_.-", *name))
			return "has a character other than letters, digits, '_', '.' and '-'";
	}
	return NULL;
}
