/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * NATRA_PASS_STRICT: mice are charged, to a bucket of their own and to that of all
 * packets. They have a share of the rate, in which they are first: while they are
 * within it, they may overdraw the bucket of all packets without limit. Where the
 * share is more than the rate, it is a ceiling, and the bucket of all packets is charged
 * only what leaves elephants their part of it (natra_limits.mice_mult). Tiny packets
 * may overdraw the share itself, out of a bucket of their own that is as fast, since
 * a lost acknowledgement slows down a stream in the other direction, and a lost SYN
 * a connection by a second.
 *
 * Over their share mice wait where they can be held, and otherwise have what
 * elephants leave at that moment. They are too short to slow down by waiting, so
 * they do not wait for long. Fair shares with elephants are not for them: each new
 * connection begins with a whole one, and the elephants would be left with nothing.
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
 * Takes a packet's cost out of a bucket. This function is global, so the verifier walks its
 * ways once, and not once for each kind of packet that gets here.
 */
natra_global __u64 take_global(__u64 *tat_ns, __u64 now_ns, __u64 burst_ns,
			       __u64 cost_ns, __u64 limit_ns)
{
	if (!tat_ns)
		return NATRA_BUCKET_REFUSED; /* the verifier wants this check */
	return natra_bucket_take(tat_ns, now_ns, burst_ns, cost_ns, limit_ns);
}

/* Returns what a mouse within its share costs the bucket of all packets. */
static __always_inline __u64 natra_mouse_cost(const struct natra_limits *limits,
					      __u32 bytes, __u64 dither)
{
	const struct natra_rate rate = {
		.mult = limits->mice_mult,
		.shift = limits->rate.shift,
	};

	return natra_cost_ns(&rate, bytes, dither);
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
	const __u64 kept_ns = limits->reserve_ns;
	__u64 depart_ns;

	if (!limit_ns || NATRA_READ_ONCE(state->fair.tat_ns) + kept_ns <
				 NATRA_READ_ONCE(state->mice_tat_ns)) {
		depart_ns = take_global(
			&state->fair.tat_ns, now_ns - kept_ns,
			limits->rate.burst_ns - kept_ns,
			natra_cost_ns(&limits->rate, bytes, dither), limit_ns);
		return depart_ns == NATRA_BUCKET_REFUSED ? depart_ns
							 : depart_ns + kept_ns;
	}
	depart_ns = take_global(
		&state->mice_tat_ns, now_ns, limits->mice.burst_ns,
		natra_cost_ns(&limits->mice, bytes, dither), limit_ns);
	if (depart_ns != NATRA_BUCKET_REFUSED)
		(void)take_global(&state->fair.tat_ns, now_ns,
				  limits->rate.burst_ns,
				  natra_mouse_cost(limits, bytes, dither),
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
			  natra_mouse_cost(limits, bytes, dither),
			  NATRA_NO_LIMIT);
	return 0;
}

#endif
