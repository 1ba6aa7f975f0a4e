/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/carried.h"

#include <stdbool.h>

/* Less than this says nothing: packets are between the two counters, and what a program has
 * judged on another CPU at this moment may not be counted yet. */
#define CARRIED_MIN_BYTES (UINT64_C(1) << 20)
/* The least share that is told, 1 / 20. A limit that holds for the rest is exceeded by as
 * much. */
#define TOLD_PART         20
/* A VLAN tag and the checksum of a frame. */
#define UNSURE_BYTES      8

static bool went_back(uint64_t now, uint64_t before)
{
	return now - before > UINT64_MAX / 2;
}

/* Writes a look over the one on record, which was `old`, unless another process does so. */
static void put(struct natra_carried *record, const struct natra_carried *old,
		const struct carried_look *look,
		const struct carried_share *share)
{
	__u64 expected = old->time_ns;

	/* Who is killed from here on leaves 0. */
	if (!__atomic_compare_exchange_n(&record->time_ns, &expected, 0, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	record->bytes = look->bytes;
	record->packets = look->packets;
	record->judged_bytes = look->judged_before - look->waiting_bytes;
	record->window_bytes = share->bytes;
	record->window_missed_bytes = share->missed_bytes;
	__atomic_store_n(&record->time_ns, look->time_ns, __ATOMIC_RELEASE);
}

struct carried_share carried_last(const struct natra_carried *record)
{
	return (struct carried_share){
		.bytes = record->window_bytes,
		.missed_bytes = record->window_missed_bytes,
	};
}

struct carried_share carried_compare(struct natra_carried *record,
				     const struct carried_look *look)
{
	struct natra_carried old;
	struct carried_share share = {0};
	uint64_t known;

	old.time_ns = __atomic_load_n(&record->time_ns, __ATOMIC_ACQUIRE);
	old.bytes = record->bytes;
	old.packets = record->packets;
	old.judged_bytes = record->judged_bytes;
	old.window_bytes = record->window_bytes;
	old.window_missed_bytes = record->window_missed_bytes;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* Another process writes it at this moment. */
	if (__atomic_load_n(&record->time_ns, __ATOMIC_RELAXED) != old.time_ns)
		return share;
	/* Drivers begin again when they are loaded again, and counters of 32 bits wrap. */
	if (!old.time_ns || went_back(look->bytes, old.bytes) ||
	    went_back(look->packets, old.packets) ||
	    went_back(look->judged_after, old.judged_bytes)) {
		put(record, &old, look, &share);
		return share;
	}
	share.bytes = look->bytes - old.bytes;
	if (share.bytes < CARRIED_MIN_BYTES)
		return carried_last(&old);
	known = look->judged_after - old.judged_bytes +
		UNSURE_BYTES * (look->packets - old.packets);
	share.missed_bytes = share.bytes > known ? share.bytes - known : 0;
	if (look->time_ns - old.time_ns >= CARRIED_WINDOW_NS) {
		put(record, &old, look, &share);
	} else {
		record->window_bytes = share.bytes;
		record->window_missed_bytes = share.missed_bytes;
	}
	return share;
}

uint32_t carried_percent(const struct carried_share *share)
{
	if (share->missed_bytes < CARRIED_MIN_BYTES ||
	    share->missed_bytes < share->bytes / TOLD_PART)
		return 0;
	return (uint32_t)((double)share->missed_bytes * 100 /
			  (double)share->bytes);
}
