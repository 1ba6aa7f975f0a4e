/* SPDX-License-Identifier: BSD-2-Clause */
#include "version.h"

#include <errno.h>
#include <string.h>

static const char *const names[VERSION_MAX] = {
	[VERSION_0_3_0] = "0.3.0", [VERSION_0_3_1] = "0.3.1",
	[VERSION_0_4_0] = "0.4.0", [VERSION_1_0_0] = "1.0.0",
	[VERSION_1_1_0] = "1.1.0",
};

const char *version_name(enum version version)
{
	return names[version];
}

int version_parse(const char *text, enum version *ret_version)
{
	for (int i = 0; i < VERSION_MAX; i++) {
		if (strcmp(names[i], text) == 0) {
			*ret_version = (enum version)i;
			return 0;
		}
	}
	return -EINVAL;
}
