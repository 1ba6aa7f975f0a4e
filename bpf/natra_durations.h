/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The buckets of a histogram of durations. Bucket i counts what is longer than
 * bucket i - 1 does and at most 2^i units of 2^10 ns (about a microsecond); the
 * last one counts all that is longer, from 9 minutes on.
 */
#ifndef NATRA_DURATIONS_H
#define NATRA_DURATIONS_H

#include "natra_compiler.h"
#include "natra_shared.h"

#define NATRA_DURATION_SHIFT 10

/*
 * Returns the number of the bucket. It counts the bits of the units, rounded up
 * and less one, without a branch for each: BPF has no instruction for the position
 * of a bit, and the verifier would walk what follows once for each way here.
 */
natra_inline __u32 natra_duration_bucket(__u64 ns)
{
	const __u64 units = (ns - !!ns) >> NATRA_DURATION_SHIFT;
	const __u32 most = (1U << (NATRA_DURATION_BUCKETS - 1)) - 1;
	__u32 bits = units > most ? most : (__u32)units;

	bits |= bits >> 1;
	bits |= bits >> 2;
	bits |= bits >> 4;
	bits |= bits >> 8;
	bits |= bits >> 16;
	/* All bits below the highest one are set now: what follows counts them. */
	bits -= (bits >> 1) & 0x55555555;
	bits = (bits & 0x33333333) + ((bits >> 2) & 0x33333333);
	return (((bits + (bits >> 4)) & 0x0f0f0f0f) * 0x01010101) >> 24;
}

#endif
