/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm.h"

#include <stdbool.h>

#include "backoff.h"

TH_TEST(test_bounds)
{
	static const uint32_t numbers[] = {0, 1, 12345, UINT32_MAX};

	for (size_t i = 0; i < 4; i++) {
		struct backoff backoff = {0};
		uint64_t bound = BACKOFF_MIN_MS;

		for (int n = 0; n < 100; n++) {
			assert_in_range(backoff_next_ms(&backoff, numbers[i]),
					bound / 2, bound);
			bound *= 2;
			if (bound > BACKOFF_MAX_MS)
				bound = BACKOFF_MAX_MS;
		}
		backoff_reset(&backoff);
		assert_in_range(backoff_next_ms(&backoff, numbers[i]),
				BACKOFF_MIN_MS / 2, BACKOFF_MIN_MS);
	}
}

/* Nodes with other numbers come at other times. */
TH_TEST(test_jitter)
{
	bool seen[BACKOFF_MIN_MS + 1] = {false};
	size_t count = 0;

	for (uint32_t random = 0; random < 1000; random++) {
		struct backoff backoff = {0};
		uint64_t wait_ms = backoff_next_ms(&backoff, random);

		count += !seen[wait_ms];
		seen[wait_ms] = true;
	}
	assert_int_equal(count, BACKOFF_MIN_MS / 2 + 1);
}

TH_MAIN(NULL, NULL)
