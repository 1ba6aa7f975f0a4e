/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses CIDR blocks: there is no crash, and the text of a block reads as the
 * same block. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "policy/subnets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct natra_subnet subnet, again;
	char *text = text_of(data, size);
	char told[SUBNET_TEXT_MAX];
	int r;

	if (!text)
		return 0;
	r = subnet_parse(text, &subnet);
	free(text);
	require(r == 0 || r == -EINVAL);
	if (r < 0)
		return 0;
	require(subnet_valid(&subnet));
	subnet_format(&subnet, told);
	require(subnet_parse(told, &again) == 0);
	require(memcmp(&subnet, &again, sizeof(subnet)) == 0);
	return 0;
}
