/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The decision whether a flow is heavy or a mouse, with hysteresis. A flow becomes
 * heavy when it reaches `enter`. Once it has been under `leave` for NATRA_HOLD_WINDOWS
 * it is a mouse again; but it stays known for NATRA_KNOWN_WINDOWS, and while it is
 * known it becomes heavy again as soon as it reaches `leave`. While a flow under
 * `leave` counts as heavy, the sketch must remember it, too. Counts halve in each
 * window, so for a flow that had `leave` units some windows ago the sketch still has
 * `leave` shifted right by as many. For a mouse whose four cells are in use by other
 * flows it has less. With the estimate alone, flows that sit around the threshold would
 * be mice half of the time and leak past the cap. So would flows that a policer has
 * sent into retransmission timeouts of seconds, each time they return.
 *
 * A heavy flow leaves the epoch in one cell of each of four rows, as in the sketch; it
 * is known if all of its cells are fresh. So flows do not evict each other, however
 * many there are, and two CPUs cannot lose each other's marks. A mouse is taken for
 * heavy if others use all four of its cells: beside 16 heavy flows this happens to one
 * mouse in a million, beside 64 to one in 5000. A cell looks fresh again after
 * 128 windows: where all cells have been used some time, 1 mouse in 65000, and 1 in 256
 * of those over `leave`.
 */
#ifndef NATRA_CLASSIFY_H
#define NATRA_CLASSIFY_H

#include "natra_compiler.h"
#include "natra_shared.h"

/* Both are a power of two less one. */
#define NATRA_HOLD_WINDOWS     7
#define NATRA_KNOWN_WINDOWS    31
#define NATRA_HEAVY_EPOCH_MASK 0x7fU
#define NATRA_HEAVY_USED       0x80U /* a cell that is 0 is not */

/* Returns the age, in windows, of the oldest of the flow's four cells. The flow
 * was last seen heavy at least that long ago. */
natra_inline __u32 natra_heavy_age(__u32 fresh, __u32 c0, __u32 c1, __u32 c2,
				   __u32 c3)
{
	__u32 a0 = (fresh - c0) & NATRA_HEAVY_EPOCH_MASK;
	__u32 a1 = (fresh - c1) & NATRA_HEAVY_EPOCH_MASK;
	__u32 a2 = (fresh - c2) & NATRA_HEAVY_EPOCH_MASK;
	__u32 a3 = (fresh - c3) & NATRA_HEAVY_EPOCH_MASK;
	__u32 high01 = a0 > a1 ? a0 : a1;
	__u32 high23 = a2 > a3 ? a2 : a3;

	return high01 > high23 ? high01 : high23;
}

enum natra_heavy {
	NATRA_HEAVY_NO, /* 0: the others are true */
	NATRA_HEAVY_YES,
	NATRA_HEAVY_NOW, /* the flow was not known to be heavy until this packet */
};

/* Returns whether the flow is heavy. `units` are those of the current packet,
 * which the estimate counts already. */
natra_inline enum natra_heavy natra_is_heavy(__u8 *cells, __u64 hash,
					     __u32 estimate, __u32 units,
					     __u32 enter, __u32 leave,
					     __u32 epoch)
{
	const __u32 width = NATRA_HEAVY_WIDTH, mask = width - 1;
	__u8 *p0 = &cells[hash & mask];
	__u8 *p1 = &cells[width + ((hash >> 16) & mask)];
	__u8 *p2 = &cells[2 * width + ((hash >> 32) & mask)];
	__u8 *p3 = &cells[3 * width + ((hash >> 48) & mask)];
	__u32 c0 = NATRA_READ_ONCE(*p0), c1 = NATRA_READ_ONCE(*p1);
	__u32 c2 = NATRA_READ_ONCE(*p2), c3 = NATRA_READ_ONCE(*p3);
	__u32 fresh = NATRA_HEAVY_USED | (epoch & NATRA_HEAVY_EPOCH_MASK);
	__u32 ages = (fresh - c0) | (fresh - c1) | (fresh - c2) | (fresh - c3);
	__u32 most =
		estimate < leave ? NATRA_HOLD_WINDOWS : NATRA_KNOWN_WINDOWS;
	enum natra_heavy heavy = NATRA_HEAVY_YES;

	if (estimate < enter && (!(c0 & c1 & c2 & c3 & NATRA_HEAVY_USED) ||
				 (ages & NATRA_HEAVY_EPOCH_MASK) > most))
		return NATRA_HEAVY_NO;
	if (estimate < leave &&
	    estimate - units < leave >> natra_heavy_age(fresh, c0, c1, c2, c3))
		return NATRA_HEAVY_NO;
	if (estimate >= leave && ages) {
		if (!(c0 & c1 & c2 & c3 & NATRA_HEAVY_USED) ||
		    (ages & NATRA_HEAVY_EPOCH_MASK) > NATRA_KNOWN_WINDOWS)
			heavy = NATRA_HEAVY_NOW;
		NATRA_WRITE_ONCE(*p0, (__u8)fresh);
		NATRA_WRITE_ONCE(*p1, (__u8)fresh);
		NATRA_WRITE_ONCE(*p2, (__u8)fresh);
		NATRA_WRITE_ONCE(*p3, (__u8)fresh);
	}
	return heavy;
}

#endif
