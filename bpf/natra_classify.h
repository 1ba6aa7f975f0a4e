/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Heavy or mouse, with hysteresis: a flow is heavy from `enter` on, a mouse
 * under `leave`, and in between what it last was, for NATRA_HEAVY_WINDOWS. By
 * the estimate alone, flows that sit around the threshold are mice half of the
 * time and leak past the cap.
 *
 * The table is direct-mapped; an entry is a 9-bit fingerprint and the lower 7
 * bits of the epoch in which the flow was last seen over `enter`. A later flow
 * in the same slot evicts an earlier one, which is heavy again as soon as it is
 * over `enter`; two CPUs may race for a slot with the same effect. A flow
 * between `leave` and `enter` takes another's entry for its own in 1 of 512
 * cases where the slot is used at all. An entry of 128 to 192 windows ago looks
 * fresh again: that flow was heavy before.
 */
#ifndef NATRA_CLASSIFY_H
#define NATRA_CLASSIFY_H

#include "natra_compiler.h"
#include "natra_shared.h"

#define NATRA_HEAVY_WINDOWS    64
#define NATRA_HEAVY_EPOCH_BITS 7
#define NATRA_HEAVY_EPOCH_MASK ((1U << NATRA_HEAVY_EPOCH_BITS) - 1)

natra_inline bool natra_is_heavy(__u16 *table, __u64 hash, __u32 estimate,
				 __u32 enter, __u32 leave, __u32 epoch)
{
	/* The rows use all 16-bit parts of the hash: fold it for the slot. */
	__u32 fold = (__u32)(hash >> 32) ^ (__u32)hash;
	__u16 *slot = &table[fold % NATRA_HEAVY_SLOTS];
	__u32 print = (fold >> 16) & ~NATRA_HEAVY_EPOCH_MASK;
	__u32 entry;

	if (!print)
		print = 1U << NATRA_HEAVY_EPOCH_BITS; /* 0 is an empty slot */
	if (estimate < leave)
		return false;

	entry = NATRA_READ_ONCE(*slot);
	if (estimate >= enter) {
		__u32 fresh = print | (epoch & NATRA_HEAVY_EPOCH_MASK);

		if (entry != fresh)
			NATRA_WRITE_ONCE(*slot, (__u16)fresh);
		return true;
	}
	return (entry & ~NATRA_HEAVY_EPOCH_MASK) == print &&
	       ((epoch - entry) & NATRA_HEAVY_EPOCH_MASK) <=
		       NATRA_HEAVY_WINDOWS;
}

#endif
