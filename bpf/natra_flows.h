/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Heavy flows by their real tuple, for `natractl top`: a small set-associative
 * table, which keeps the largest flows of each set. By age alone it would keep
 * none: where more flows take turns than a set has ways, each packet would evict
 * the flow that comes next.
 *
 * The sketch says how large a flow is at present. The table has only the tag of a flow,
 * which contains the flow's place in the last row of the sketch. The count of that one
 * cell is never too low. It is too high where a larger flow has the same cell; then the
 * smallest of the other ways is evicted.
 *
 * Nothing is locked. Two CPUs that see the same flow may lose an addition to
 * its sums; two that insert into the same way may mix their tuples, which the
 * reader finds because the hash of the tuple is then not its tag.
 */
#ifndef NATRA_FLOWS_H
#define NATRA_FLOWS_H

#include "natra_compiler.h"
#include "natra_hash.h"
#include "natra_shared.h"
#include "natra_sketch.h"

/* After 8.6 s without a heavy packet a flow has no claim to its entry: in the
 * sketch it has 1/256 of what it had, unless others use its cell. */
#define NATRA_FLOW_IDLE_TICKS  (1U << 13)
/* Another CPU may have seen the flow later than one's own clock says. */
#define NATRA_FLOW_EARLY_TICKS (1U << 10)

natra_inline __u32 natra_flow_tag(__u64 hash)
{
	return (__u32)(hash >> 32) | 1; /* 0 is an empty way */
}

natra_inline __u32 natra_flow_now(__u64 now_ns)
{
	return (__u32)(now_ns >> NATRA_FLOW_TICK_SHIFT);
}

/* Returns whether the flow has sent nothing for this many ticks. An age of nearly 2^32
 * ticks means a packet that another CPU has seen after `now`. */
natra_inline bool natra_flow_is_idle(const struct natra_flow_entry *entry,
				     __u32 now, __u32 ticks)
{
	return now - entry->last + NATRA_FLOW_EARLY_TICKS >=
	       ticks + NATRA_FLOW_EARLY_TICKS;
}

natra_inline struct natra_flow_entry *
natra_flow_set(struct natra_flow_entry *flows, __u64 hash)
{
	return &flows[(hash % NATRA_FLOW_SETS) * NATRA_FLOW_WAYS];
}

/* Returns the entry that has the flow's tag, or NULL. */
natra_inline struct natra_flow_entry *
natra_flow_find(struct natra_flow_entry *flows, __u64 hash)
{
	struct natra_flow_entry *set = natra_flow_set(flows, hash);

#pragma GCC unroll 1
	for (__u64 i = 0; i < NATRA_FLOW_WAYS; i++) {
		if (set[i].tag == natra_flow_tag(hash))
			return &set[NATRA_FORGET(i, hash) % NATRA_FLOW_WAYS];
	}
	return NULL;
}

/* Returns an upper bound of how large the flow of an entry is at present. */
natra_inline __u32 natra_flow_claim(const struct natra_flow_entry *entry,
				    const __u32 *sketch, __u32 mask,
				    __u32 epoch, __u32 now)
{
	const __u32 *row = &sketch[(NATRA_ROWS - 1) * (mask + 1)];
	const __u32 tag = entry->tag;

	if (!tag || natra_flow_is_idle(entry, now, NATRA_FLOW_IDLE_TICKS))
		return 0;
	return natra_cell_count(NATRA_READ_ONCE(row[(tag >> 16) & mask]),
				epoch);
}

/*
 * Returns the entry to evict for a flow of this estimate, or NULL if each flow of
 * its set has a better claim. The newcomer must be larger by half, because equal
 * flows, as fair shares make them, would otherwise evict each other in turns.
 */
natra_inline struct natra_flow_entry *
natra_flow_evict(struct natra_flow_entry *flows, const __u32 *sketch,
		 __u32 mask, __u64 hash, __u32 estimate, __u64 now_ns)
{
	struct natra_flow_entry *set = natra_flow_set(flows, hash);
	const __u32 epoch = natra_epoch(now_ns);
	const __u32 now = natra_flow_now(now_ns);
	/* The claim in the upper bits, and the number of the way in the lower ones: the
	 * least of these numbers names the way with the least claim. */
	__u64 least = ~0ULL;

#pragma GCC unroll 1
	for (__u64 i = 0; i < NATRA_FLOW_WAYS; i++) {
		__u64 claim =
			natra_flow_claim(&set[i], sketch, mask, epoch, now);

		claim = NATRA_FORGET(claim, hash) * NATRA_FLOW_WAYS + i;
		least = NATRA_FORGET(claim < least ? claim : least, hash);
	}
	if (estimate <= least / NATRA_FLOW_WAYS * 3 / 2)
		return NULL;
	return &set[NATRA_FORGET(least, hash) % NATRA_FLOW_WAYS];
}

natra_inline void natra_flow_insert(struct natra_flow_entry *entry, __u64 hash,
				    const struct natra_tuple *t)
{
	entry->tag = 0;
	entry->bytes = 0;
	entry->packets = 0;
	entry->tuple = *t;
	NATRA_WRITE_ONCE(entry->tag, natra_flow_tag(hash));
}

natra_inline void natra_flow_add(struct natra_flow_entry *entry, __u32 now,
				 __u32 bytes)
{
	entry->last = now;
	entry->bytes += bytes;
	entry->packets++;
}

#endif
