/* SPDX-License-Identifier: BSD-2-Clause */
#include "privilege.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#include "../common/text.h"

#define BIT(capability) (UINT64_C(1) << (capability))

static const struct {
	uint64_t any; /* one of these is enough */
	const char *name;
} needs[] = {
	{BIT(CAP_NET_ADMIN), "CAP_NET_ADMIN"},
	{BIT(CAP_SYS_ADMIN), "CAP_SYS_ADMIN"},
	{BIT(CAP_BPF) | BIT(CAP_SYS_ADMIN), "CAP_BPF"},
};

#define NEEDS_LEN (sizeof(needs) / sizeof(needs[0]))

static uint64_t own(void)
{
	static const char key[] = "CapEff:";
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long all = 0;
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, key, sizeof(key) - 1) == 0)
			all = strtoull(line + sizeof(key) - 1, NULL, 16);
	}
	if (file)
		(void)fclose(file);
	return all;
}

uint64_t privilege_lacks(void)
{
	uint64_t have = own(), lacks = 0;

	for (size_t i = 0; i < NEEDS_LEN; i++) {
		if (!(have & needs[i].any))
			lacks |= UINT64_C(1) << i;
	}
	return lacks;
}

char *privilege_names(uint64_t lacks)
{
	char *names = text_copy("");

	for (size_t i = 0; i < NEEDS_LEN; i++) {
		char *more;

		if (!(lacks & UINT64_C(1) << i))
			continue;
		more = text_format("%s%s%s", names, names[0] ? ", " : "",
				   needs[i].name);
		free(names);
		names = more;
	}
	return names;
}
