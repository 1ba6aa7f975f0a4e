/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Generic cell rate algorithm (ITU-T I.371, virtual scheduling) in ns: the one
 * word of state is the theoretical arrival time of the next packet. A packet
 * is judged by the time at which it may go and charged afterwards, so one
 * packet of debt is always allowed, whatever its size: a 64 kB GSO packet is
 * never refused for being larger than the burst.
 */
#ifndef NATRA_BUCKET_H
#define NATRA_BUCKET_H

#include "natra_compiler.h"
#include "natra_shared.h"

#define NATRA_NO_LIMIT       (~0ULL)
#define NATRA_BUCKET_REFUSED (~0ULL)

/*
 * Returns the dither for natra_cost_ns: a number that is spread evenly over 64
 * bits. It takes two multiplications, because the seed may contain the bucket's
 * time, which the last dithered cost was added to.
 */
natra_inline __u64 natra_dither(__u64 seed)
{
	seed *= 0xff51afd7ed558ccdULL;
	seed ^= seed >> 32;
	return seed * 0xc4ceb9fe1a85ec53ULL;
}

/*
 * Returns the time in ns that the bytes take at the rate. It does not overflow
 * for up to NATRA_BYTES_MAX bytes: user space gives no mult over 8 * 10^9 and
 * no shift over 58. A nanosecond is much of a small packet's time at 10 Gbit/s,
 * so the dither decides whether the fraction is rounded up or down, and the sum
 * over many packets is exact.
 */
natra_inline __u64 natra_cost_ns(const struct natra_rate *rate, __u32 bytes,
				 __u64 dither)
{
	/* The shift is done in two steps, so that the dither becomes 0 if
	 * rate->shift is 0. */
	dither = dither >> 1 >> ((63 - rate->shift) & 63);
	return ((__u64)bytes * rate->mult + dither) >> (rate->shift & 63);
}

/*
 * Takes `cost_ns` out of the bucket. Returns the time at which the packet may
 * go, which is over now_ns by at most limit_ns; or NATRA_BUCKET_REFUSED, with
 * the bucket as it was.
 */
natra_inline __u64 natra_bucket_take(__u64 *tat_ns, __u64 now_ns,
				     __u64 burst_ns, __u64 cost_ns,
				     __u64 limit_ns)
{
	__u64 full_ns = now_ns > burst_ns ? now_ns - burst_ns : 0;
	__u64 tat = NATRA_READ_ONCE(*tat_ns);
	__u64 depart = tat > full_ns ? tat : full_ns;

	if (depart > now_ns && depart - now_ns > limit_ns)
		return NATRA_BUCKET_REFUSED;
	if (__sync_val_compare_and_swap(tat_ns, tat, depart + cost_ns) == tat)
		return depart;
	/* Another CPU was faster, so the bucket is in use and not full: add, and
	 * give it back if the packet came too late for the limit. */
	depart = __sync_fetch_and_add(tat_ns, cost_ns);
	if (depart <= now_ns || depart - now_ns <= limit_ns)
		return depart;
	__sync_fetch_and_add(tat_ns, -cost_ns);
	return NATRA_BUCKET_REFUSED;
}

/* How much NATRA_DEBT_BYTES cost: what a bucket owes is so much of this. It has 49 bits at
 * 1 bit/s, and still 5 us at 100 Gbit/s. */
#define NATRA_DEBT_BYTES 65536U
#define NATRA_DEBT_BITS  49

natra_inline __u64 natra_debt_unit(const struct natra_rate *rate)
{
	return natra_cost_ns(rate, NATRA_DEBT_BYTES, 0);
}

/*
 * Converts what a bucket owes after its rate was changed. What took 15 s would otherwise keep
 * the pod waiting that long at a higher one. What it owes up to the time base_ns stays, and so
 * does all at a lower rate: time passes for either. from_ns and to_ns are natra_debt_unit at
 * both rates.
 */
natra_inline void natra_bucket_convert(__u64 *tat_ns, __u64 base_ns,
				       __u64 from_ns, __u64 to_ns)
{
	const __u64 most_ns = (1ULL << NATRA_DEBT_BITS) - 1;
	const __u64 tat = NATRA_READ_ONCE(*tat_ns);
	const __u64 owed_ns = tat - base_ns < most_ns ? tat - base_ns : most_ns;

	if (tat <= base_ns || to_ns >= from_ns)
		return;
	/* An addition loses nothing of what other CPUs add at the same time. */
	__sync_fetch_and_add(
		tat_ns,
		base_ns + ((owed_ns * ((to_ns << 14) / from_ns)) >> 14) - tat);
}

/* Returns the time up to which a bucket's debt stays at the next change, kept_ns at the last
 * one. What was owed when the rate was lowered is of the higher rate: if it became shorter as the
 * rate is raised again, whoever may change it would owe nothing. */
natra_inline __u64 natra_debt_kept(__u64 kept_ns, __u64 tat_ns, __u64 from_ns,
				   __u64 to_ns)
{
	return to_ns > from_ns && tat_ns > kept_ns ? tat_ns : kept_ns;
}

#endif
