/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Mice that are not free.
 *
 * NATRA_PASS_GUARDED: mice in total have a ceiling, which is a bucket of their own.
 * What it has room for passes and is not charged to the bucket of all packets.
 * Every other packet is judged and charged like one of a heavy flow.
 *
 * NATRA_PASS_CHARGED: mice are charged, to a bucket of their own and to that of all
 * packets. They have a share of the rate, in which they are first: while they are
 * within it, they may overdraw the bucket of all packets without limit. Tiny packets
 * may overdraw the share itself, out of a bucket of their own that is as fast, since
 * a lost acknowledgement slows down a stream in the other direction, and a lost SYN
 * a connection by a second.
 *
 * Over their share mice wait where they can be held, and otherwise have what
 * elephants leave at that moment. They are too short to slow down by waiting, so
 * they do not wait for long.
 */
#ifndef NATRA_MICE_BPF_H
#define NATRA_MICE_BPF_H

#include <bpf/bpf_helpers.h>

#include "natra_bucket.h"
#include "natra_fair.h"
#include "natra_packet.bpf.h"
#include "natra_shared.h"

/* TCP without data, with its options, over IPv6 too. */
#define NATRA_TINY_BYTES 128

/*
 * Takes a packet's cost out of either bucket. This function is global, so
 * the verifier walks all tries of the loop once, and not once for each kind of
 * packet that gets here.
 */
natra_global __u64 take_global(__u64 *tat_ns, __u64 now_ns, __u64 burst_ns,
			       __u64 cost_ns, __u64 limit_ns)
{
	if (!tat_ns)
		return NATRA_BUCKET_REFUSED; /* the verifier wants this check */
	return natra_bucket_take(tat_ns, now_ns, burst_ns, cost_ns, limit_ns);
}

/*
 * Charges a mouse that is over its share, and returns when it may go, or
 * NATRA_BUCKET_REFUSED if that is more than limit_ns from now. It goes when its
 * turn comes in the share, or earlier if elephants leave room for it: not in the
 * last part of the bucket, out of which they live. Neither time goes back, unless
 * CPUs race, so the packets of a mouse that is held keep their order. There are
 * two exceptions. A tiny packet does not wait while the debt of tiny ones is within
 * reserve_ns, and may overtake a longer one of its flow. A mouse that becomes heavy
 * begins with a clock of 0, so its first turns may come before the departure of what
 * is held.
 */
static __always_inline __u64 natra_mouse_over_share(
	struct natra_state *state, const struct natra_limits *limits,
	__u32 bytes, __u64 now_ns, __u64 dither, __u64 limit_ns)
{
	const __u64 cost_ns = natra_cost_ns(&limits->rate, bytes, dither);
	const __u64 kept_ns = limits->reserve_ns;
	__u64 depart_ns;

	if (!limit_ns || NATRA_READ_ONCE(state->fair.tat_ns) + kept_ns <
				 NATRA_READ_ONCE(state->mice_tat_ns)) {
		depart_ns = take_global(&state->fair.tat_ns, now_ns - kept_ns,
					limits->rate.burst_ns - kept_ns,
					cost_ns, limit_ns);
		return depart_ns == NATRA_BUCKET_REFUSED ? depart_ns
							 : depart_ns + kept_ns;
	}
	depart_ns = take_global(
		&state->mice_tat_ns, now_ns, limits->mice.burst_ns,
		natra_cost_ns(&limits->mice, bytes, dither), limit_ns);
	if (depart_ns != NATRA_BUCKET_REFUSED)
		(void)take_global(&state->fair.tat_ns, now_ns,
				  limits->rate.burst_ns, cost_ns,
				  NATRA_NO_LIMIT);
	return depart_ns;
}

/* Charges a mouse. Returns when it may go, which is now if that is not later than
 * now_ns, or NATRA_BUCKET_REFUSED. */
static __always_inline __u64 natra_mouse_take(struct natra_state *state,
					      const struct natra_limits *limits,
					      __u32 bytes, __u64 now_ns,
					      __u64 dither, __u64 limit_ns)
{
	const __u64 cost_ns = natra_cost_ns(&limits->mice, bytes, dither);

	if (take_global(&state->mice_tat_ns, now_ns, limits->mice.burst_ns,
			cost_ns, 0) == NATRA_BUCKET_REFUSED) {
		if (bytes > NATRA_TINY_BYTES ||
		    take_global(&state->tiny_tat_ns, now_ns, 0, cost_ns,
				limits->reserve_ns) == NATRA_BUCKET_REFUSED)
			return natra_mouse_over_share(state, limits, bytes,
						      now_ns, dither, limit_ns);
		(void)take_global(&state->mice_tat_ns, now_ns,
				  limits->mice.burst_ns, cost_ns,
				  NATRA_NO_LIMIT);
	}
	(void)take_global(&state->fair.tat_ns, now_ns, limits->rate.burst_ns,
			  natra_cost_ns(&limits->rate, bytes, dither),
			  NATRA_NO_LIMIT);
	return 0;
}

/*
 * Returns whether the ceiling of mice has room for the packet, and takes it. The
 * clock of the last tick will do: it is never ahead, and the burst is longer.
 *
 * Where packets are held, a mouse whose clock is ahead may have one in fq, which
 * must not be overtaken. It is judged like a heavy flow until that has left.
 */
static __always_inline bool
natra_mouse_is_within(struct natra_state *state,
		      const struct natra_limits *limits,
		      const struct packet *packet, bool edt)
{
	const __u64 tat_ns = NATRA_READ_ONCE(state->mice_tat_ns);
	const __u64 dither = natra_dither(tat_ns + ((__u64)packet->seed << 32));

	if (edt && NATRA_READ_ONCE(*natra_fair_clock(
			   state->clocks, packet->hash)) > packet->now_ns)
		return false;
	return take_global(&state->mice_tat_ns, packet->now_ns,
			   limits->mice.burst_ns,
			   natra_cost_ns(&limits->mice, packet->bytes, dither),
			   0) != NATRA_BUCKET_REFUSED;
}

#endif
