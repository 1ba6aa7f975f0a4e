/* SPDX-License-Identifier: BSD-2-Clause */
/* A loop for code whose functions a fuzzer calls itself: nothing becomes ready, no timer ends,
 * and the time stands still. */
#ifndef NATRA_FUZZ_FAKE_LOOP_H
#define NATRA_FUZZ_FAKE_LOOP_H

#include <unistd.h>

#include "../../tools/agent/loop.h"

uint64_t clock_ms(void)
{
	return 1;
}

int loop_add(struct loop *loop, struct source *source, uint32_t events)
{
	(void)loop;
	(void)source;
	(void)events;
	return 0;
}

int loop_change(struct loop *loop, struct source *source, uint32_t events)
{
	return loop_add(loop, source, events);
}

void loop_close_source(struct loop *loop, struct source *source)
{
	(void)loop;
	if (source->fd >= 0)
		(void)close(source->fd);
	source->fd = -1;
}

int timer_open(struct timer *timer, struct loop *loop, void (*expired)(void *),
	       void *arg)
{
	(void)loop;
	*timer = (struct timer){.expired = expired, .arg = arg};
	return 0;
}

void timer_set(struct timer *timer, uint64_t delay_ms)
{
	(void)timer;
	(void)delay_ms;
}

void timer_close(struct timer *timer, struct loop *loop)
{
	(void)timer;
	(void)loop;
}

#endif
