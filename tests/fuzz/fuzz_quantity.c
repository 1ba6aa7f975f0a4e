/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses quantities and times: there is no crash, and results are as the header
 * promises. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <natra/natra.h>

#include "fuzz.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aULL
#define HOUR_NS   3600000000000ULL

typedef int (*parse_fn)(const char *text, uint64_t *ret);

static void check(parse_fn parse, const char *text, uint64_t min, uint64_t max)
{
	uint64_t value = UNTOUCHED, again = UNTOUCHED;
	char plus[256];
	int r = parse(text, &value);

	require(r == 0 || r == -EINVAL || r == -ERANGE);
	if (r < 0) {
		require(value == UNTOUCHED);
		return;
	}
	require(value >= min && value <= max);
	/* A plus sign does not change the value. */
	if (*text == '+' || strlen(text) > sizeof(plus) - 2)
		return;
	(void)snprintf(plus, sizeof(plus), "+%s", text);
	require(parse(plus, &again) == 0);
	require(again == value);
}

/* Requires that a result written as plain digits is read as itself. */
static void check_round_trip(const char *text)
{
	uint64_t value = 0, again = 0;
	char digits[32];

	if (natra_parse_size(text, &value) < 0)
		return;
	(void)snprintf(digits, sizeof(digits), "%llu",
		       (unsigned long long)value);
	require(natra_parse_size(digits, &again) == 0);
	require(again == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = text_of(data, size);

	if (!text)
		return 0;
	check(natra_parse_rate, text, NATRA_RATE_MIN_BITS_PER_SEC,
	      NATRA_RATE_MAX_BITS_PER_SEC);
	check(natra_parse_size, text, 1, INT64_MAX);
	check(natra_parse_time, text, 1, HOUR_NS);
	check_round_trip(text);
	free(text);
	return 0;
}
