/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests check how often an event may be reported, and that readers of the ring get
 * whole events while several writers overwrite them. */
#include "cm.h"

#include <pthread.h>
#include <string.h>

#include "natra_events.h"
#include "state/ring.h"

#define WINDOW (1ULL << NATRA_WINDOW_SHIFT)

/* Returns how many of `tries` events at this time may be reported. */
static unsigned int told(__u32 *tat, __u64 window, __u32 burst, int tries)
{
	unsigned int count = 0;

	for (int i = 0; i < tries; i++) {
		const __u64 now_ns = window * WINDOW + (__u64)i;
		const bool due = natra_event_is_due(tat, now_ns);
		const bool taken = natra_event_take(tat, now_ns, burst);

		assert_int_equal(due, taken);
		count += taken;
	}
	return count;
}

TH_TEST(one_in_a_window)
{
	__u32 tat = 0;

	for (__u64 window = 0; window < 100; window++)
		assert_int_equal(told(&tat, window, 1, 50), 1);
	/* A pause saves nothing up. */
	assert_int_equal(told(&tat, 1000, 1, 50), 1);
}

TH_TEST(many_at_once_after_a_pause)
{
	__u32 tat = 0;

	assert_int_equal(told(&tat, 100, 16, 50), 16);
	for (__u64 window = 101; window < 120; window++)
		assert_int_equal(told(&tat, window, 16, 50), 1);
	assert_int_equal(told(&tat, 119 + 5, 16, 50), 5);
	assert_int_equal(told(&tat, 1000, 16, 50), 16);
	/* A machine that has just been started has no windows to look back to. */
	tat = 0;
	assert_in_range(told(&tat, 3, 16, 50), 1, 16);
}

static struct natra_event_ring ring;

struct writer {
	uint64_t first, count;
	pthread_t thread;
};

/* Writes events each of which has the same number in all places. */
static void *write_events(void *arg)
{
	const struct writer *w = arg;

	for (uint64_t i = w->first; i < w->first + w->count; i++) {
		struct natra_event_entry event = {
			.reason = (uint16_t)i,
			.class_number = (uint16_t)(i >> 16),
			.time_ns = i,
			.owner = i,
			.tuple.ports = (uint32_t)i,
		};

		for (int j = 0; j < 4; j++)
			event.tuple.daddr[j] = (uint32_t)i;
		natra_event_write(&ring, &event);
	}
	return NULL;
}

static void is_whole(const struct natra_event_entry *event)
{
	const uint32_t number = (uint32_t)event->owner;

	assert_int_equal(event->time_ns, event->owner);
	assert_int_equal(event->reason | (uint32_t)event->class_number << 16,
			 number);
	assert_int_equal(event->tuple.ports, number);
	for (int i = 0; i < 4; i++)
		assert_int_equal(event->tuple.daddr[i], number);
}

/* Reads what the writers write meanwhile. Returns how many were lost. A slow reader
 * reads what is just being overwritten. */
static uint64_t read_all(struct writer *writers, int len, uint64_t count,
			 int pause)
{
	struct ring_view view = {.map = &ring};
	struct natra_event_entry event;
	uint64_t read = 0, lost = 0;

	memset(&ring, 0, sizeof(ring));
	for (int i = 0; i < len; i++)
		assert_int_equal(pthread_create(&writers[i].thread, NULL,
						write_events, &writers[i]),
				 0);
	while (read + lost < count) {
		if (!ring_read(&view, &event, &lost))
			continue;
		is_whole(&event);
		read++;
		for (volatile int i = 0; i < pause; i++)
			;
	}
	for (int i = 0; i < len; i++)
		(void)pthread_join(writers[i].thread, NULL);
	assert_int_equal(ring_read(&view, &event, &lost), 0);
	assert_int_equal(read + lost, count);
	assert_int_equal(view.place, count);
	return lost;
}

/* There is one writer, because threads, unlike programs, can be stopped in the middle
 * of an entry until others have come round to it. */
TH_TEST(a_slow_reader_loses_whole_events)
{
	struct writer writer = {.count = 1000000};

	assert_in_range(read_all(&writer, 1, writer.count, 100), 0,
			writer.count - 1);
}

TH_TEST(writers_lose_nothing_of_each_other)
{
	for (int round = 0; round < 50; round++) {
		struct writer writers[3] = {
			{.first = 1000, .count = NATRA_EVENTS / 3},
			{.first = 2000, .count = NATRA_EVENTS / 3},
			{.first = 3000, .count = NATRA_EVENTS / 3},
		};

		assert_int_equal(read_all(writers, 3, NATRA_EVENTS / 3 * 3, 0),
				 0);
	}
}

TH_MAIN(NULL, NULL)
