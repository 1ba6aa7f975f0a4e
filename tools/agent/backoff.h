/* SPDX-License-Identifier: BSD-2-Clause */
/* How long to wait before the next try: longer after each failure, and not the same
 * time on all nodes of a cluster. */
#ifndef NATRA_AGENT_BACKOFF_H
#define NATRA_AGENT_BACKOFF_H

#include <stdint.h>

#define BACKOFF_MIN_MS 200
#define BACKOFF_MAX_MS 30000

struct backoff {
	uint64_t bound_ms; /* 0: nothing has failed */
};

/* Notes a failure and returns the time to wait: from half the bound to the bound,
 * by `random`, and the bound doubles each time. */
uint64_t backoff_next_ms(struct backoff *backoff, uint32_t random);
void backoff_reset(struct backoff *backoff);

#endif
