/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int loop_open(struct loop *loop)
{
	loop->stopped = false;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? -errno : 0;
}

static int control(struct loop *loop, int what, struct source *source,
		   uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	return epoll_ctl(loop->epoll_fd, what, source->fd, &event) < 0 ? -errno
								       : 0;
}

int loop_add(struct loop *loop, struct source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, source, events);
}

int loop_change(struct loop *loop, struct source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, source, events);
}

void loop_remove(struct loop *loop, struct source *source)
{
	if (source->fd >= 0)
		(void)control(loop, EPOLL_CTL_DEL, source, 0);
	source->fd = -1;
}

void loop_close_source(struct loop *loop, struct source *source)
{
	int fd = source->fd;

	loop_remove(loop, source);
	if (fd >= 0)
		(void)close(fd);
}

int loop_run(struct loop *loop)
{
	while (!loop->stopped) {
		struct epoll_event event;
		/* Takes one event at a time: handling it may remove the source of a
		 * second event. */
		int n = epoll_wait(loop->epoll_fd, &event, 1, -1);
		const struct source *source = event.data.ptr;

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 1)
			source->ready(source->arg, event.events);
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}

void loop_close(struct loop *loop)
{
	if (loop->epoll_fd >= 0)
		(void)close(loop->epoll_fd);
	loop->epoll_fd = -1;
}

static void timer_ready(void *arg, uint32_t events)
{
	struct timer *timer = arg;
	uint64_t times;

	(void)events;
	/* A timer that was set anew since it expired has nothing to read. */
	if (read(timer->source.fd, &times, sizeof(times)) < 0)
		return;
	timer->is_set = false;
	timer->expired(timer->arg);
}

int timer_open(struct timer *timer, struct loop *loop, void (*expired)(void *),
	       void *arg)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int r;

	*timer = (struct timer){
		.source = {.fd = fd, .ready = timer_ready, .arg = timer},
		.expired = expired,
		.arg = arg,
	};
	if (fd < 0)
		return -errno;
	r = loop_add(loop, &timer->source, EPOLLIN);
	if (r < 0) {
		(void)close(fd);
		timer->source.fd = -1;
	}
	return r;
}

void timer_set(struct timer *timer, uint64_t delay_ms)
{
	struct itimerspec when = {
		.it_value = {.tv_sec = (time_t)(delay_ms / 1000),
			     .tv_nsec = (long)(delay_ms % 1000) * 1000000},
	};

	/* A time of zero would stop the timer. */
	if (!delay_ms)
		when.it_value.tv_nsec = 1;
	(void)timerfd_settime(timer->source.fd, 0, &when, NULL);
	timer->is_set = true;
}

void timer_stop(struct timer *timer)
{
	const struct itimerspec never = {0};

	(void)timerfd_settime(timer->source.fd, 0, &never, NULL);
	timer->is_set = false;
}

void timer_close(struct timer *timer, struct loop *loop)
{
	loop_close_source(loop, &timer->source);
}

uint64_t clock_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
