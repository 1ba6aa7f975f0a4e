/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Heavy or mouse, with hysteresis: a flow is heavy from `enter` on, a mouse
 * under `leave`, and in between what it last was, for NATRA_HEAVY_WINDOWS. By
 * the estimate alone, flows that sit around the threshold are mice half of the
 * time and leak past the cap.
 *
 * What they last were is in a table of sets, each a word of two entries, the
 * one seen last in the upper half: a 9-bit fingerprint and the lower 7 bits of
 * the epoch in which the flow was last seen over `enter`. A third flow in a set
 * evicts the one seen longest ago, which is heavy again as soon as it is over
 * `enter`. Flows that evict each other in turns are mice in turns: of 16 flows,
 * three share a set in one of 470 cases. (With one entry a set, two did in one
 * of nine, and 16 flows took 3 to 7 % more than their cap.) Two CPUs that write
 * the same set may lose one of the entries, with the effect of an eviction. A
 * flow between `leave` and `enter` takes another's entry for its own in 1 of 256
 * cases where the set is full. An entry of 128 to 192 windows ago looks fresh
 * again: that flow was heavy before.
 */
#ifndef NATRA_CLASSIFY_H
#define NATRA_CLASSIFY_H

#include "natra_compiler.h"
#include "natra_shared.h"

#define NATRA_HEAVY_WINDOWS     64
#define NATRA_HEAVY_EPOCH_MASK  0x7fU
#define NATRA_HEAVY_EPOCH_SHIFT 16
#define NATRA_HEAVY_PRINT_SHIFT 23

natra_inline bool natra_is_heavy(__u32 *table, __u64 hash, __u32 estimate,
				 __u32 enter, __u32 leave, __u32 epoch)
{
	/* The rows use all 16-bit parts of the hash: fold it for the set. */
	__u32 fold = (__u32)(hash >> 32) ^ (__u32)hash;
	__u32 *set = &table[fold % NATRA_HEAVY_SETS];
	__u32 print = fold >> NATRA_HEAVY_PRINT_SHIFT;
	__u32 fresh, word;

	if (!print)
		print = 1; /* 0 is an empty entry */
	if (estimate < leave)
		return false;

	/* The flow's own entry, or the one that it evicts, to the upper half. */
	word = NATRA_READ_ONCE(*set);
	if (word >> NATRA_HEAVY_PRINT_SHIFT != print)
		word = word << 16 | word >> 16;
	if (estimate < enter)
		return word >> NATRA_HEAVY_PRINT_SHIFT == print &&
		       ((epoch - (word >> NATRA_HEAVY_EPOCH_SHIFT)) &
			NATRA_HEAVY_EPOCH_MASK) <= NATRA_HEAVY_WINDOWS;

	fresh = print << NATRA_HEAVY_PRINT_SHIFT |
		(epoch & NATRA_HEAVY_EPOCH_MASK) << NATRA_HEAVY_EPOCH_SHIFT |
		(word & 0xffff);
	if (word != fresh)
		NATRA_WRITE_ONCE(*set, fresh);
	return true;
}

#endif
