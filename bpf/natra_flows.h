/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Heavy flows by their real tuple, for `natractl top`: a small set-associative
 * table, the oldest of a set's ways is evicted.
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

natra_inline __u32 natra_flow_tag(__u64 hash)
{
	return (__u32)(hash >> 32) | 1; /* 0 is an empty way */
}

natra_inline __u32 natra_flow_now(__u64 now_ns)
{
	return (__u32)(now_ns >> NATRA_FLOW_TICK_SHIFT);
}

/* Returns the entry that has the flow's tag, or else the one to evict for it. */
natra_inline struct natra_flow_entry *
natra_flow_find(struct natra_flow_entry *flows, __u64 hash, __u32 now)
{
	struct natra_flow_entry *set =
		&flows[(hash % NATRA_FLOW_SETS) * NATRA_FLOW_WAYS];
	__u32 oldest_age = 0;
	__u64 way = 0;

#pragma GCC unroll 1
	for (__u32 i = 0; i < NATRA_FLOW_WAYS; i++) {
		__u32 age = now - set[i].last;

		if (set[i].tag == natra_flow_tag(hash)) {
			way = i;
			break;
		}
		if (age > oldest_age) {
			oldest_age = age;
			way = i;
		}
	}
	return &set[NATRA_FORGET(way, hash) % NATRA_FLOW_WAYS];
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
