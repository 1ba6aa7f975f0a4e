/* SPDX-License-Identifier: BSD-2-Clause */
#include "backoff.h"

uint64_t backoff_next_ms(struct backoff *backoff, uint32_t random)
{
	uint64_t half;

	backoff->bound_ms =
		backoff->bound_ms ? 2 * backoff->bound_ms : BACKOFF_MIN_MS;
	if (backoff->bound_ms > BACKOFF_MAX_MS)
		backoff->bound_ms = BACKOFF_MAX_MS;
	half = backoff->bound_ms / 2;
	return half + random % (half + 1);
}

void backoff_reset(struct backoff *backoff)
{
	backoff->bound_ms = 0;
}
