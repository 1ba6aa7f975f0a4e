/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/str.h"

#include <string.h>

bool str_copy(char *to, size_t size, const char *from)
{
	size_t len = from ? strlen(from) : 0;
	bool fits = len < size;

	if (size == 0)
		return false;
	if (!fits)
		len = size - 1;
	if (len)
		memcpy(to, from, len);
	to[len] = '\0';
	return fits;
}
