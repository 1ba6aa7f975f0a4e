/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Events: a program reports the moments in which something begins, such as a flow that
 * becomes heavy. All programs of a node write into one ring, in which the newest events
 * overwrite the oldest. So nobody has to read it, a reader changes nothing, and there
 * can be many.
 *
 * A slot reports at most one event of a kind in a window (2^30 ns; natra_over.h has one
 * that is rarer), and up to NATRA_EVENT_FLOWS flows that become heavy at once. A pod
 * therefore cannot push others' events out of the ring before a reader has seen them: one
 * slot takes four minutes to fill it.
 *
 * Nothing is locked. A writer takes the next place, makes its entry invalid, fills it
 * in and makes it valid again, and a reader looks before and after. Two writers
 * would have to be a whole ring apart to fill in the same entry at the same time.
 */
#ifndef NATRA_EVENTS_H
#define NATRA_EVENTS_H

#include <stdbool.h>

#include "natra_compiler.h"
#include "natra_shared.h"
#include "natra_sketch.h"

/* The number of flows that a slot may report at once, after as many windows without
 * one. */
#define NATRA_EVENT_FLOWS 16U

/* No window has this number before the machine has run for 146 years. */
natra_inline __u32 natra_event_window(__u64 now_ns)
{
	return (__u32)(now_ns >> NATRA_WINDOW_SHIFT);
}

/* Returns whether an event may be reported at this time, without taking the
 * permission. */
natra_inline bool natra_event_is_due(const __u32 *tat, __u64 now_ns)
{
	return NATRA_READ_ONCE(*tat) <= natra_event_window(now_ns);
}

/*
 * Asks for permission to report an event: one in a window, and up to `burst` at once.
 * *tat is the time of a bucket as in natra_bucket.h, in windows. Returns false if that
 * is too many, or if another CPU has reported one at the same moment.
 */
natra_inline bool natra_event_take(__u32 *tat, __u64 now_ns, __u32 burst)
{
	const __u32 window = natra_event_window(now_ns);
	const __u32 old = NATRA_READ_ONCE(*tat);
	__u32 next = old;

	if (next + burst <= window)
		next = window - burst + 1;
	return next <= window &&
	       __sync_val_compare_and_swap(tat, old, next + 1) == old;
}

/* Returns how many events of a kind a slot may report at once. */
natra_inline __u32 natra_event_burst(__u32 reason)
{
	return reason == NATRA_REPORT_HEAVY ? NATRA_EVENT_FLOWS : 1;
}

/* Writes an event. Its number is filled in here. */
natra_inline void natra_event_write(struct natra_event_ring *ring,
				    const struct natra_event_entry *event)
{
	const __u64 place = __sync_fetch_and_add(&ring->head, 1);
	struct natra_event_entry *entry =
		&ring->entries[place & (NATRA_EVENTS - 1)];

	/* An entry of another place has this number, so nobody takes it for the
	 * entry of this one. Both exchanges are full barriers. */
	(void)__atomic_exchange_n(&entry->number, (__u32)place,
				  __ATOMIC_SEQ_CST);
	entry->reason = event->reason;
	entry->class_number = event->class_number;
	entry->time_ns = event->time_ns;
	entry->owner = event->owner;
	entry->tuple = event->tuple;
	__asm__ volatile("" ::: "memory");
	(void)__atomic_exchange_n(&entry->number, (__u32)place + 1,
				  __ATOMIC_SEQ_CST);
}

#endif
