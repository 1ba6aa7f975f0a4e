/* SPDX-License-Identifier: BSD-2-Clause */
/* The event loop: one thread that waits for descriptors and for times. */
#ifndef NATRA_AGENT_LOOP_H
#define NATRA_AGENT_LOOP_H

#include <stdbool.h>
#include <stdint.h>

struct loop {
	int epoll_fd;
	bool stopped;
};

#define LOOP_INIT                                                              \
	{                                                                      \
		.epoll_fd = -1                                                 \
	}

/* A descriptor that the loop waits for. It belongs to the caller, and must stay
 * where it is in memory until loop_remove. */
struct source {
	int fd; /* -1: not watched */
	void (*ready)(void *arg, uint32_t events);
	void *arg;
};

#define SOURCE_INIT                                                            \
	{                                                                      \
		.fd = -1                                                       \
	}

/* These return 0 or -errno. The events are those of epoll_ctl(2). */
int loop_open(struct loop *loop);
int loop_add(struct loop *loop, struct source *source, uint32_t events);
int loop_change(struct loop *loop, struct source *source, uint32_t events);
/* Stops waiting for a source; its descriptor stays open. */
void loop_remove(struct loop *loop, struct source *source);
/* Stops waiting for a source and closes its descriptor. */
void loop_close_source(struct loop *loop, struct source *source);
/* Calls the sources until loop_stop. */
int loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
void loop_close(struct loop *loop);

/* Something to do at a time, once. Setting a timer again replaces its time. */
struct timer {
	struct source source;
	void (*expired)(void *arg);
	void *arg;
	bool is_set;
};

int timer_open(struct timer *timer, struct loop *loop, void (*expired)(void *),
	       void *arg);
void timer_set(struct timer *timer, uint64_t delay_ms);
void timer_stop(struct timer *timer);
void timer_close(struct timer *timer, struct loop *loop);

/* Returns the monotonic clock. */
uint64_t clock_ms(void);

#endif
