/* SPDX-License-Identifier: BSD-2-Clause */
/* Bounds how often something is done in any stretch of time. */
#ifndef NATRA_AGENT_BUDGET_H
#define NATRA_AGENT_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUDGET_MAX 64

struct budget {
	size_t times; /* at most BUDGET_MAX */
	uint64_t period_ms;
	uint64_t done_ms[BUDGET_MAX]; /* the last times, in a ring */
	size_t count, next;
};

/* Reads "5/600": five times in 600 seconds. Returns false if it is not that. */
bool budget_parse(struct budget *budget, const char *text);
/* Returns 0 if it may be done now, else how long that takes. */
uint64_t budget_wait_ms(const struct budget *budget, uint64_t now_ms);
/* Notes that it is done. */
void budget_take(struct budget *budget, uint64_t now_ms);

#endif
