/* SPDX-License-Identifier: BSD-2-Clause */
#include "budget.h"

#include <ctype.h>
#include <stdlib.h>

#define PERIOD_MAX_S 86400

/* Reads a whole number from 1 to `max` that ends at `end`. */
static bool read_number(const char *text, char end, unsigned long max,
			unsigned long *ret, const char **ret_rest)
{
	char *rest;

	if (!isdigit((unsigned char)text[0]))
		return false;
	*ret = strtoul(text, &rest, 10);
	*ret_rest = rest;
	return *rest == end && *ret >= 1 && *ret <= max;
}

bool budget_parse(struct budget *budget, const char *text)
{
	unsigned long times, seconds;

	if (!read_number(text, '/', BUDGET_MAX, &times, &text) ||
	    !read_number(text + 1, '\0', PERIOD_MAX_S, &seconds, &text))
		return false;
	*budget = (struct budget){
		.times = times,
		.period_ms = (uint64_t)seconds * 1000,
	};
	return true;
}

uint64_t budget_wait_ms(const struct budget *budget, uint64_t now_ms)
{
	uint64_t free_ms;

	if (budget->count < budget->times)
		return 0;
	/* The ring is full, so the next place has the oldest time. */
	free_ms = budget->done_ms[budget->next] + budget->period_ms;
	return free_ms > now_ms ? free_ms - now_ms : 0;
}

void budget_take(struct budget *budget, uint64_t now_ms)
{
	budget->done_ms[budget->next] = now_ms;
	budget->next = (budget->next + 1) % budget->times;
	if (budget->count < budget->times)
		budget->count++;
}
