/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Whether small flows, which are free (NATRA_PASS_FREE), exceed the limit together. Nothing is
 * charged for it: once in a window what all packets passed since is compared with what the limit
 * allows. What is over it adds to a debt, which is paid back by what is under nine eighths of the
 * limit, because heavy flows may be over it by a few percent for a while. A burst, a queue that
 * fills up, and a second's worth of small flows are no debt yet (natra_over_limits.debt).
 *
 * A group is judged in the same way. Its programs charge it for all but the small flows that are
 * free, and of these it hears once in a window of each slot of a member, when that is looked at.
 *
 * It is told when a whole window is over after the debt was made, so that its factor is that of
 * the flood and not of the moment in which it began; and again only after the debt was paid back.
 */
#ifndef NATRA_OVER_H
#define NATRA_OVER_H

#include "natra_compiler.h"
#include "natra_shared.h"
#include "natra_sketch.h"

/* Times are in 2^20 ns here, so that what a rate of 1 Pbit/s allows in the longest pause fits
 * into 64 bits. */
#define NATRA_OVER_SHIFT     20
#define NATRA_OVER_PAUSE_MAX (1ULL << 16)

/* A window is looked at once, by one of so many small packets of a CPU. */
#define NATRA_OVER_PACKETS 16U

enum natra_over_phase {
	NATRA_OVER_UNDER,
	NATRA_OVER_DEBT, /* the next window that is over is told */
	NATRA_OVER_TOLD,
};

/* Returns whether this caller is to look at the window that has passed, whose begin becomes
 * *ret_since_ns. */
natra_inline int natra_over_take(struct natra_over *over, __u64 now_ns,
				 __u64 *ret_since_ns)
{
	const __u64 since_ns = NATRA_READ_ONCE(over->time_ns);

	*ret_since_ns = since_ns;
	return now_ns >> NATRA_WINDOW_SHIFT > since_ns >> NATRA_WINDOW_SHIFT &&
	       __sync_val_compare_and_swap(&over->time_ns, since_ns, now_ns) ==
		       since_ns;
}

/*
 * Looks at the window since_ns to now_ns. `passed` is the number of all bytes that ever passed,
 * and `before` are the limits before these. Returns the percent of the limit that is to be told,
 * or 0. The caller has taken the window.
 */
natra_inline __u32 natra_over_judge(struct natra_over *over,
				    const struct natra_over_limits *limits,
				    const struct natra_over_limits *before,
				    __u16 active, __u64 passed, __u64 since_ns,
				    __u64 now_ns)
{
	const __u64 pause = (now_ns - since_ns) >> NATRA_OVER_SHIFT;
	const __u64 bytes = passed - over->passed;
	__u64 allowed, debt, percent, rate = limits->rate;

	over->passed = passed;
	if (pause > NATRA_OVER_PAUSE_MAX) {
		over->active = active;
		over->debt = 0;
		over->phase = NATRA_OVER_UNDER;
		return 0;
	}
	/* A tenant who changes the limit in each window hides no flood by that. Both limits may
	 * have held in this one; bytes that were no debt at a higher limit are none now. */
	if (over->active != active) {
		over->active = active;
		if (rate < before->rate) {
			rate = before->rate;
			if (over->debt > limits->debt)
				over->debt = limits->debt;
		}
	}
	allowed = (rate * pause) >> (NATRA_WINDOW_SHIFT - NATRA_OVER_SHIFT);
	debt = over->debt + bytes;
	debt -= debt < allowed + (allowed >> 3) ? debt
						: allowed + (allowed >> 3);
	/* The debt of a flood of an hour is paid back in a window, too. */
	if (debt > limits->debt + limits->rate)
		debt = limits->debt + limits->rate;
	over->debt = debt;
	if (!debt)
		over->phase = NATRA_OVER_UNDER;
	if (debt <= limits->debt || bytes <= allowed)
		return 0;
	if (over->phase == NATRA_OVER_UNDER) {
		over->phase = NATRA_OVER_DEBT;
		return 0;
	}
	percent = bytes * 100 / (allowed ? allowed : 1);
	over->percent = percent > 0xffffffffU ? 0xffffffffU : (__u32)percent;
	NATRA_WRITE_ONCE(over->over_ns, now_ns);
	if (over->phase == NATRA_OVER_TOLD)
		return 0;
	over->phase = NATRA_OVER_TOLD;
	return over->percent;
}

#endif
