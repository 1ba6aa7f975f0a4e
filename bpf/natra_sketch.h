/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Count-min sketch with lazy ageing and conservative update.
 *
 * A cell has the epoch of its last write in its upper 8 bits and a saturating
 * count of 64-byte units in the lower 24. Reading shifts the count right by
 * the windows that have passed since, so the half-life is one window and
 * nothing ever sweeps the array.
 *
 * Bounds. Two CPUs that update one cell at once may lose one of the two
 * additions: an estimate is then low by at most one packet for each such
 * collision, so a flow becomes heavy that much later. A CPU that has read the
 * clock just before a window's end takes cells that another one has written
 * just after it for those of long ago, and begins them anew: what their flow
 * has sent until then is forgotten, but one that is heavy stays so
 * (natra_classify.h). A cell that was not
 * touched for 256 windows (4.6 minutes) looks fresh again for a moment; a flow
 * is misjudged only if that happens in all four rows.
 */
#ifndef NATRA_SKETCH_H
#define NATRA_SKETCH_H

#include "natra_compiler.h"
#include "natra_shared.h"

#define NATRA_WINDOW_SHIFT    30 /* a window is 2^30 ns */
#define NATRA_UNIT_SHIFT      6  /* a unit is 64 bytes */
#define NATRA_CELL_COUNT_BITS 24
#define NATRA_CELL_COUNT_MAX  ((1U << NATRA_CELL_COUNT_BITS) - 1)

natra_inline __u32 natra_epoch(__u64 now_ns)
{
	return (now_ns >> NATRA_WINDOW_SHIFT) & 0xff;
}

/* To the nearest unit, so that many 66-byte ACKs do not count double. */
natra_inline __u32 natra_units(__u32 bytes)
{
	__u32 units =
		(bytes + (1U << (NATRA_UNIT_SHIFT - 1))) >> NATRA_UNIT_SHIFT;

	return units ? units : 1;
}

natra_inline __u32 natra_cell_count(__u32 cell, __u32 epoch)
{
	__u32 age = (epoch - (cell >> NATRA_CELL_COUNT_BITS)) & 0xff;

	if (age >= NATRA_CELL_COUNT_BITS)
		return (__u32)NATRA_FORGET(0, cell);
	return (cell & NATRA_CELL_COUNT_MAX) >> age;
}

/*
 * Charge a packet to its flow and return the flow's estimate in units.
 * cells: NATRA_ROWS rows of mask + 1 cells; mask + 1 is a power of two.
 */
natra_inline __u32 natra_sketch_add(__u32 *cells, __u32 mask, __u64 hash,
				    __u32 units, __u32 epoch)
{
	__u32 width = mask + 1;
	__u32 i0 = hash & mask;
	__u32 i1 = width + ((hash >> 16) & mask);
	__u32 i2 = 2 * width + ((hash >> 32) & mask);
	__u32 i3 = 3 * width + ((hash >> 48) & mask);
	__u32 c0 = natra_cell_count(NATRA_READ_ONCE(cells[i0]), epoch);
	__u32 c1 = natra_cell_count(NATRA_READ_ONCE(cells[i1]), epoch);
	__u32 c2 = natra_cell_count(NATRA_READ_ONCE(cells[i2]), epoch);
	__u32 c3 = natra_cell_count(NATRA_READ_ONCE(cells[i3]), epoch);
	__u32 low01 = c0 < c1 ? c0 : c1;
	__u32 low23 = c2 < c3 ? c2 : c3;
	__u32 estimate = (low01 < low23 ? low01 : low23) + units;
	__u32 cell;

	if (estimate > NATRA_CELL_COUNT_MAX)
		estimate = (__u32)NATRA_FORGET(NATRA_CELL_COUNT_MAX, hash);
	cell = epoch << NATRA_CELL_COUNT_BITS | estimate;

	/* Conservative update: a cell that is higher already counts other flows,
	 * too. */
	if (c0 < estimate)
		NATRA_WRITE_ONCE(cells[i0], cell);
	if (c1 < estimate)
		NATRA_WRITE_ONCE(cells[i1], cell);
	if (c2 < estimate)
		NATRA_WRITE_ONCE(cells[i2], cell);
	if (c3 < estimate)
		NATRA_WRITE_ONCE(cells[i3], cell);
	return estimate;
}

#endif
