/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Fair shares among the heavy flows of a direction.
 *
 * The bucket (natra_bucket.h) alone is one virtual queue: its time, tat, is the
 * end of the queue, and whoever fills it makes everybody wait. Here each flow
 * has a clock of its own beside it, as in virtual clock and start-time fair
 * queueing: a packet moves its flow's clock on by K times what it costs the
 * bucket. The clock of a flow that sends at 1/K of the rate runs as time does;
 * if it sends less, its clock stays behind. A packet's turn, the time at which it
 * may go, is where its flow's clock or the bucket stands, whichever is earlier.
 * It follows that
 *
 *  - no packet has a later turn than in the one queue;
 *  - a flow under 1/K of the rate does not wait at all;
 *  - what a flow leaves of its share is there for the others, because the
 *    bucket is then behind their clocks;
 *  - a flow's packets do not overtake each other where they are held, because
 *    neither its clock nor the bucket goes back there.
 *
 * Packets that go before the bucket's time overdraw it, and the overdraft tells
 * whether K is right. If the shares of all flows sum up to more than the rate,
 * the bucket runs away from the turns that were given, and K must grow; if they
 * sum up to less, it falls back, and so must K. natra_fair_adapt is that loop: a
 * PI controller of the logarithm of K, which runs once in a tick of 16.8 ms and
 * wants an overdraft of one unit. A unit is a power of two of ns which user
 * space chooses (natra_limits.fair_shift): up to 2^32 ns, at least what a long
 * packet takes, though not the longest.
 * Until the loop has settled, natra_fair_bound bounds the overdraft: then turns
 * are those of the bucket less that bound, and all flows are in one queue again.
 *
 * Where packets can be held until their turns, turns begin with the present, and
 * the queue is that of fq. Where they cannot, the queue is the burst: turns begin
 * a burst ago, and a packet whose turn is later than now is marked or dropped
 * (natra_fair_police). Everything else is the same.
 *
 * Clocks take no memory for each flow. There are two rows of cells, a flow has
 * one cell in each, and the lower of the two is its clock, as in a count-min
 * sketch: a cell is at least as late as the clock of every flow that has it.
 * Flows that share both cells, as two particular ones do with a chance of 1 in
 * 2^18, share a clock, and with it a share of the rate.
 *
 * All times are those of CLOCK_MONOTONIC, and 0 stands for all times before the
 * machine was started. CPUs that charge packets at the same time lose nothing of
 * the bucket; of a clock or of latest_ns they may lose a packet.
 */
#ifndef NATRA_FAIR_H
#define NATRA_FAIR_H

#include <stdbool.h>

#include "natra_bucket.h"
#include "natra_compiler.h"
#include "natra_shared.h"

#define NATRA_FAIR_TICK_SHIFT 24 /* the loop runs once in 2^24 ns */
#define NATRA_FAIR_IDLE_TICKS 64 /* after more idle ticks K begins at 1 again */

/* K has 12 bits of fraction and is at most 256, and in groups as many times the weight. */
#define NATRA_FAIR_K_SHIFT 12
#define NATRA_FAIR_K_ONE   (1U << NATRA_FAIR_K_SHIFT)
#define NATRA_FAIR_K_MAX   (256U << NATRA_FAIR_K_SHIFT)

/* An overdraft of one unit: overdrafts have 16 bits of fraction. */
#define NATRA_FAIR_UNIT_SHIFT 16
#define NATRA_FAIR_UNIT       (1LL << NATRA_FAIR_UNIT_SHIFT)

/* Both are in units: the bound of the overdraft, and for how long before now a flow
 * whose packets are held has credit if it did not use its share. */
#define NATRA_FAIR_BOUND  3
#define NATRA_FAIR_CREDIT 3

/*
 * The bound with the shortest unit, which is then 100 ms. A local socket of datagrams
 * that has filled its buffer is woken when half of it has left, and then sends that
 * half at once: 66 kB, or up to 100 kB in GSO packets, which take 53 or 80 ms at 10
 * Mbit/s. Until the next burst only other flows are charged, and the overdraft grows
 * by as much. Under a lower bound these would wait, although they are within their
 * shares.
 */
#define NATRA_FAIR_BOUND_SHORTEST 6

/*
 * The gains of the loop: by which part of K an error of one unit changes it when it comes
 * (P), and in each unit of time that it lasts (all others).
 *
 * They were chosen with tests/unit/test_fair.c: twice as large, flows with a round trip of
 * 50 ms make K swing; half as large, 16 flows that start together have not
 * found their shares after 2 s.
 *
 * A unit of four ticks or more, as it always is for policed packets, is a long one. The
 * loop is slow then, so a change of the overdraft counts twice: the sum of 8 policed
 * streams varies less from second to second. A part by which K grows and the same by which
 * it shrinks then cancel: the overdraft of policed streams swings by a unit or two, and if
 * each swing left K a few percent lower, that would be as much as the rest raises it, and
 * members of a group would not find their shares.
 */
#define NATRA_FAIR_LONG_UNIT_SHIFT   2
#define NATRA_FAIR_P_SHIFT           3 /* 1/8 */
#define NATRA_FAIR_P_LONG_SHIFT      2
#define NATRA_FAIR_I_SHIFT           7 /* 1/128 */
/* K grows by 1/4 more at the bound. It shrinks by 1/32 more under half a unit, when
 * flows have left: the one queue that is left has an overdraft of a packet at any
 * time. With a long unit it shrinks by 1/4 more: where the round trip is short, each flow
 * sends at once what its share allows and then waits for TCP's timer (0.2 s), so the
 * overdraft is small in few of the ticks that are seen. */
#define NATRA_FAIR_GROW_SHIFT        2
#define NATRA_FAIR_SHRINK_SHIFT      5
#define NATRA_FAIR_SHRINK_LONG_SHIFT 2
/* The time since the last correction counts for this many units at most. The
 * overdraft that was left when all fell silent says nothing about the time since. */
#define NATRA_FAIR_SILENT_UNITS      2
/*
 * All of these changes are scaled by 16 / (16 + K). A flow's next packet shows the
 * effect of K, and it comes after the packets of K flows.
 */
#define NATRA_FAIR_K_HALF            (16U << NATRA_FAIR_K_SHIFT)

/* The chance to be marked or dropped is x^(2^10), and none while 1/2^5 of the
 * burst is left, see natra_fair_chance. */
#define NATRA_FAIR_SQUARINGS  10
#define NATRA_FAIR_SAFE_SHIFT 5
#define NATRA_FAIR_SURE       (1ULL << 32) /* a chance of 1 */

/* natra_fair_forgive lets policed flows gain 1/2^5 of the rate together, and what the rate
 * carries in 2^26 ns (67 ms) at once. */
#define NATRA_FAIR_FORGIVEN_SHIFT 5
#define NATRA_FAIR_FORGIVEN_NS    (1ULL << 26)

/* No packet is longer on the wire: one of BIG TCP has up to 512 kB, and the headers of its
 * segments besides. */
#define NATRA_FAIR_LONGEST_BYTES (1U << 20)

/* A drop sets its flow's clock to this long before now (2.1 ms), see natra_fair_relieve. */
#define NATRA_FAIR_RELIEF_NS (1ULL << 21)

/* natra_fair_signals: the chance is 1 when the delay is over the target by 2^26 ns (67 ms), or by
 * half of that. */
#define NATRA_FAIR_RAMP_SHIFT   26
#define NATRA_FAIR_WHOLE        (1U << 16)
/* The root of 1/32: no more is dropped of the datagrams of a local sender. One that does not
 * answer stops when its socket's buffer is full. */
#define NATRA_FAIR_SPARE        11585U
/* A shorter packet that is dropped counts by its part of so many bytes, see natra_fair_signals. */
#define NATRA_FAIR_LONG_SHIFT   10
#define NATRA_FAIR_LONG_BYTES   (1U << NATRA_FAIR_LONG_SHIFT)
#define NATRA_FAIR_PACKET_BYTES 1514
#define NATRA_FAIR_L4S_SHIFT    2

/* The times between which turns lie, for a packet at now_ns. */
struct natra_span {
	__u64 full_ns; /* where the bucket is if it is full: a burst ago */
	__u64 low_ns;  /* the earliest turn */
	/* The latest turn that was given, or the turn of a packet that does not wait,
	 * if that is later. The overdraft is how far the bucket is beyond this time. */
	__u64 latest_ns;
	__u64 stale_ns; /* a clock beyond this time means nothing, */
	__u64 reset_ns; /* and its flow has this turn, the latest that counts */
	__u32 k_more;   /* of natra_fair, by which the packet is charged */
};

struct natra_turn {
	__u64 *clock[NATRA_FAIR_ROWS];
	__u64 tat_ns;  /* of the bucket; not earlier than where it is full */
	__u64 turn_ns; /* when the packet may go */
};

/* Returns the time that is by_ns before ns, or 0. */
natra_inline __u64 natra_fair_before(__u64 ns, __u64 by_ns)
{
	return ns > by_ns ? ns - by_ns : NATRA_FORGET(0, ns);
}

/* Returns K * cost_ns, for K = 1 + k_more. It does not overflow for costs under
 * 2^56 ns if K is at most 256, and a packet of 512 kB at 1 bit/s takes a 17th of that. */
natra_inline __u64 natra_fair_times_k(__u64 cost_ns, __u32 k_more)
{
	const __u64 low = cost_ns & (NATRA_FAIR_K_ONE - 1);

	return cost_ns + (cost_ns >> NATRA_FAIR_K_SHIFT) * k_more +
	       ((low * k_more) >> NATRA_FAIR_K_SHIFT);
}

/* Returns the time from which the overdraft counts, see natra_span. */
natra_inline __u64 natra_fair_latest(const struct natra_fair *fair,
				     const struct natra_limits *limits,
				     __u64 now_ns, bool held)
{
	const __u64 latest_ns = NATRA_READ_ONCE(fair->latest_ns);
	const __u64 base_ns =
		held ? now_ns
		     : natra_fair_before(now_ns, limits->rate.burst_ns);

	return latest_ns > base_ns ? latest_ns : base_ns;
}

/*
 * Returns the span of turns, for packets that are held (up to max_delay_ns) or
 * policed. now_ns may be up to a tick of the loop ago; then the burst and the credit
 * are longer by as much.
 *
 * A clock cannot be ahead by more than the latest turn and K times the longest packet, BIG
 * TCP's, or K times this packet if that is longer, unless the limits or K were others when it
 * was set. Its flow would then wait for what it took long ago. A held packet has the
 * latest turn instead, behind which no packet of its flow can be.
 */
natra_inline void natra_fair_span(const struct natra_fair *fair,
				  const struct natra_limits *limits,
				  __u64 now_ns, __u64 cost_ns, bool held,
				  struct natra_span *ret)
{
	const __u32 k_more = NATRA_READ_ONCE(fair->k_more);
	const __u64 longest_ns =
		natra_cost_ns(&limits->rate, NATRA_FAIR_LONGEST_BYTES, 0);

	ret->full_ns = natra_fair_before(now_ns, limits->rate.burst_ns);
	ret->low_ns = natra_fair_before(
		now_ns, (__u64)NATRA_FAIR_CREDIT << (limits->fair_shift & 63));
	if (!held || ret->low_ns < ret->full_ns)
		ret->low_ns = ret->full_ns;
	ret->latest_ns = natra_fair_latest(fair, limits, now_ns, held);
	ret->reset_ns = held ? now_ns + limits->max_delay_ns : now_ns;
	ret->stale_ns =
		now_ns + (1ULL << NATRA_FAIR_TICK_SHIFT) +
		(held ? limits->max_delay_ns : limits->max_overdraft_ns) +
		natra_fair_times_k(cost_ns > longest_ns ? cost_ns : longest_ns,
				   k_more);
	ret->k_more = k_more;
}

/* Returns how long before now the turn of a policed packet is that passes for sure: while 1/32 of
 * the burst is left. No bucket is fuller than the time since the machine was started. */
natra_inline __u64 natra_fair_safe(__u64 burst_ns, __u64 now_ns)
{
	return (burst_ns < now_ns ? burst_ns : now_ns) >> NATRA_FAIR_SAFE_SHIFT;
}

/*
 * Returns whether a packet with this turn must be judged by the exact time. now_ns is the time of
 * the last tick of the system's clock, which is never ahead. So a packet whose turn it has reached
 * may go, and one that is beyond the longest delay by it is dropped, although its delay may be
 * shorter by up to a tick.
 */
natra_inline bool natra_fair_is_near(const struct natra_limits *limits,
				     __u64 now_ns, __u64 turn_ns, bool held)
{
	if (held)
		return turn_ns > now_ns &&
		       turn_ns - now_ns <= limits->max_delay_ns;
	/* The chance of a drop depends on the time. */
	return turn_ns + natra_fair_safe(limits->rate.burst_ns, now_ns) >
	       now_ns;
}

/* Returns to how many units the overdraft is bounded. */
natra_inline __u64 natra_fair_bound(__u32 fair_shift)
{
	return fair_shift == NATRA_FAIR_TICK_SHIFT ? NATRA_FAIR_BOUND_SHORTEST
						   : NATRA_FAIR_BOUND;
}

/*
 * Returns by which part K changes, with 16 bits of fraction, after an overdraft that
 * was `before` in the last tick. A longer unit stands for longer packets, each of which
 * moves the overdraft; the terms that add up from tick to tick are divided by as much.
 */
natra_inline __s64 natra_fair_step(__s64 over, __s64 before, __u64 ticks,
				   __u32 fair_shift)
{
	const __u32 scale = (fair_shift - NATRA_FAIR_TICK_SHIFT) & 31;
	const __u64 most_ticks = (__u64)NATRA_FAIR_SILENT_UNITS << scale;
	const bool is_long = scale >= NATRA_FAIR_LONG_UNIT_SHIFT;
	__s64 lasting = (over - NATRA_FAIR_UNIT) >> NATRA_FAIR_I_SHIFT;
	__s64 step;

	if (over >= (__s64)natra_fair_bound(fair_shift) * NATRA_FAIR_UNIT)
		lasting += NATRA_FAIR_UNIT >> NATRA_FAIR_GROW_SHIFT;
	if (over < NATRA_FAIR_UNIT / 2)
		lasting -= NATRA_FAIR_UNIT >>
			   (is_long ? NATRA_FAIR_SHRINK_LONG_SHIFT
				    : NATRA_FAIR_SHRINK_SHIFT);
	if (ticks > most_ticks)
		ticks = most_ticks;
	step = (lasting * (__s64)ticks) >> scale;
	step += (over - before) >>
		(is_long ? NATRA_FAIR_P_LONG_SHIFT : NATRA_FAIR_P_SHIFT);
	if (is_long && step < 0)
		step = -(__s64)(((__u64)-step << NATRA_FAIR_UNIT_SHIFT) /
				(__u64)(NATRA_FAIR_UNIT - step));
	if (step < -NATRA_FAIR_UNIT / 2)
		return -NATRA_FAIR_UNIT / 2;
	return step > NATRA_FAIR_UNIT ? NATRA_FAIR_UNIT : step;
}

/* Returns the overdraft in units, from -1 to its bound. */
natra_inline __s64 natra_fair_overdraft(__u64 tat_ns, __u64 latest_ns,
					__u32 fair_shift)
{
	const __s64 ns = (__s64)(tat_ns - latest_ns);
	const __s64 over = ns >> ((fair_shift - NATRA_FAIR_UNIT_SHIFT) & 31);
	const __s64 bound =
		(__s64)natra_fair_bound(fair_shift) * NATRA_FAIR_UNIT;

	if (over < -NATRA_FAIR_UNIT)
		return -NATRA_FAIR_UNIT;
	return over > bound ? bound : over;
}

/* Adapts K to the overdraft since latest_ns (see natra_fair_latest), unless another CPU does so for
 * this tick. now_ns is exact. The weight of a flow is 1. Members of a group with a weight of 64 need a
 * K that is 64 times as large, which those of less weight leave alone. */
natra_inline void natra_fair_adapt(struct natra_fair *fair, __u64 now_ns,
				   __u64 latest_ns, __u32 fair_shift,
				   __u32 weight)
{
	const __u64 tick = now_ns >> NATRA_FAIR_TICK_SHIFT;
	const __u64 old = NATRA_READ_ONCE(fair->tick);
	const __s64 over = natra_fair_overdraft(NATRA_READ_ONCE(fair->tat_ns),
						latest_ns, fair_shift);
	__s64 k = NATRA_FAIR_K_ONE;

	/* CPUs' clocks may differ: one that is behind does not go back. */
	if (tick <= old ||
	    __sync_val_compare_and_swap(&fair->tick, old, tick) != old)
		return;
	if (tick - old <= NATRA_FAIR_IDLE_TICKS) {
		const __u64 before = NATRA_FAIR_K_ONE + (__u64)fair->k_more;
		const __u64 half = (__u64)weight * NATRA_FAIR_K_HALF;
		const __u64 gain = before * half / (before + half);
		const __s64 most = (__s64)weight * NATRA_FAIR_K_MAX;

		k = (__s64)before +
		    (((__s64)gain * natra_fair_step(over, fair->over,
						    tick - old, fair_shift)) >>
		     NATRA_FAIR_UNIT_SHIFT);
		if (k > most && k > (__s64)before)
			k = (__s64)before > most ? (__s64)before : most;
	}
	if (k < NATRA_FAIR_K_ONE)
		k = NATRA_FAIR_K_ONE;
	fair->over = (__s32)over;
	NATRA_WRITE_ONCE(fair->k_more, (__u32)k - NATRA_FAIR_K_ONE);
}

/* Returns the cell in a row of the flow that has this hash. */
natra_inline __u64 *natra_fair_cell(__u64 *clocks, __u64 hash, __u32 row)
{
	return &clocks[row * NATRA_FAIR_WIDTH +
		       ((hash >> (16 * row)) & (NATRA_FAIR_WIDTH - 1))];
}

/* Returns the lower cell of the flow that has this hash, which is its clock. */
natra_inline __u64 *natra_fair_clock(__u64 *clocks, __u64 hash)
{
	__u64 *one = natra_fair_cell(clocks, hash, 0);
	__u64 *other = natra_fair_cell(clocks, hash, 1);

	return NATRA_READ_ONCE(*other) < NATRA_READ_ONCE(*one) ? other : one;
}

/* Finds the turn of a packet of the flow that has this hash. Changes nothing. */
natra_inline void natra_fair_turn(const struct natra_fair *fair, __u64 *clocks,
				  __u64 hash, const struct natra_span *span,
				  __u32 fair_shift, struct natra_turn *ret)
{
	const __u64 bound_ns = natra_fair_bound(fair_shift)
			       << (fair_shift & 63);
	__u64 tat_ns = NATRA_READ_ONCE(fair->tat_ns), turn_ns, least_ns;
	__u64 other_ns;

	ret->clock[0] = natra_fair_cell(clocks, hash, 0);
	ret->clock[1] = natra_fair_cell(clocks, hash, 1);
	turn_ns = NATRA_READ_ONCE(*ret->clock[0]);
	other_ns = NATRA_READ_ONCE(*ret->clock[1]);
	if (other_ns < turn_ns)
		turn_ns = other_ns;
	if (turn_ns > span->stale_ns)
		turn_ns = span->reset_ns;
	if (tat_ns < span->full_ns)
		tat_ns = span->full_ns;
	least_ns = natra_fair_before(tat_ns, bound_ns);
	if (least_ns > span->latest_ns && turn_ns < least_ns)
		turn_ns = least_ns;
	if (turn_ns > tat_ns)
		turn_ns = tat_ns;
	if (turn_ns < span->low_ns)
		turn_ns = span->low_ns;
	ret->tat_ns = tat_ns;
	ret->turn_ns = turn_ns;
}

/*
 * Charges a packet that goes, to the bucket and, unless it is forgiven, to its flow's clock.
 * The clock moves on from the turn and not from where it stood, so that a flow is not
 * punished later for a share that others did not use.
 */
natra_inline void natra_fair_charge(struct natra_fair *fair,
				    const struct natra_span *span,
				    const struct natra_turn *turn,
				    __u64 cost_ns, bool forgiven)
{
	const __u64 end_ns =
		turn->turn_ns +
		(forgiven ? 0 : natra_fair_times_k(cost_ns, span->k_more));
	/* A marked packet may go before its turn. If that turn were the latest, its flow
	 * would seem to overdraw less than flows whose packets are dropped instead, and K
	 * would be higher while it sends. */
	const __u64 latest_ns =
		turn->turn_ns < span->reset_ns ? turn->turn_ns : span->reset_ns;
	const __u64 tat_ns = NATRA_READ_ONCE(fair->tat_ns);

	/* A bucket that is full is set by one CPU; all others add to it. */
	if (tat_ns >= turn->tat_ns ||
	    __sync_val_compare_and_swap(&fair->tat_ns, tat_ns,
					turn->tat_ns + cost_ns) != tat_ns)
		__sync_fetch_and_add(&fair->tat_ns, cost_ns);
	if (latest_ns > span->latest_ns)
		NATRA_WRITE_ONCE(fair->latest_ns, latest_ns);
#pragma GCC unroll 2
	for (int i = 0; i < NATRA_FAIR_ROWS; i++) {
		const __u64 clock_ns = NATRA_READ_ONCE(*turn->clock[i]);

		if (clock_ns < end_ns || clock_ns > span->stale_ns)
			NATRA_WRITE_ONCE(*turn->clock[i], end_ns);
	}
}

/*
 * Returns the chance, in parts of 2^32, that a packet which nothing can hold is marked
 * or dropped. It follows from how much of the burst is left to its flow: it is x^1024,
 * where x is 0 while all of it is left and 1 when nothing is. The chance is steep,
 * because a sender that loses packets while there is credit falls below the rate for
 * long; and it is no step, because losses would come in bursts. While 1/32 of the burst
 * is left it is under 2^-32.
 */
natra_inline __u64 natra_fair_chance(const struct natra_limits *limits,
				     __u64 now_ns, __u64 turn_ns)
{
	__u64 x;

	if (turn_ns >= now_ns)
		return NATRA_FAIR_SURE;
	if (now_ns - turn_ns >= natra_fair_safe(limits->rate.burst_ns, now_ns))
		return 0;
	x = 0xffffffff - (((now_ns - turn_ns) * limits->ramp_mult) >> 32);
#pragma GCC unroll 10
	for (int i = 0; i < NATRA_FAIR_SQUARINGS; i++)
		x = (x * x) >> 32;
	return x;
}

/*
 * Judges such a packet by that chance and 32 random bits. NATRA_COUNT_MARKED
 * stands for: mark it, and drop it if it cannot be marked. So both kinds of flows
 * are judged alike. A flow of marked packets may overdraw its share up to
 * max_overdraft_ns: one that sets ECT and ignores CE does not get past it, but for what
 * natra_fair_forgive allows.
 */
natra_inline enum natra_counter
natra_fair_police(const struct natra_limits *limits, __u64 now_ns,
		  __u64 turn_ns, __u64 chance, __u32 random)
{
	if (random >= chance)
		return NATRA_COUNT_ADMITTED;
	return turn_ns > now_ns + limits->max_overdraft_ns
		       ? NATRA_COUNT_DROPPED_RATE
		       : NATRA_COUNT_MARKED;
}

/*
 * Returns whether a policed flow may gain cost_ns of the bucket's time: by a marked packet that
 * leaves its clock where it is, or by a clock that is set back after a drop. The bucket is
 * charged all the same. README.md, Policing, says why. *tat_ns is a GCRA bucket in which that
 * costs 32 times its time and 2^31 ns are the burst. CPUs that forgive at the same time may
 * each do so for the price of one.
 */
natra_inline bool natra_fair_forgive(__u64 *tat_ns, __u64 now_ns, __u64 cost_ns)
{
	const __u64 first_ns = natra_fair_before(
		now_ns, NATRA_FAIR_FORGIVEN_NS << NATRA_FAIR_FORGIVEN_SHIFT);
	__u64 tat = NATRA_READ_ONCE(*tat_ns);

	if (tat > now_ns)
		return false;
	if (tat < first_ns)
		tat = first_ns;
	NATRA_WRITE_ONCE(*tat_ns, tat + (cost_ns << NATRA_FAIR_FORGIVEN_SHIFT));
	return true;
}

/*
 * Sets the clock of a policed flow, a packet of which was dropped at turn_ns, to just before now,
 * if natra_fair_forgive allows what that gains. So what it sends next passes, and with it the
 * retransmission. Only the cell that is the flow's clock is set: the other one may be another
 * flow's. Nothing is forgiven to a flow that is further ahead than marks may bring it: one that can
 * be marked ignores its marks, and with what another one needs, several flows with less can go on.
 */
natra_inline void natra_fair_relieve(__u64 *clocks, __u64 hash,
				     const struct natra_limits *limits,
				     __u32 k_more, __u64 now_ns, __u64 turn_ns,
				     __u64 *forgiven_tat_ns)
{
	const __u64 to_ns = natra_fair_before(now_ns, NATRA_FAIR_RELIEF_NS);
	__u64 *clock = natra_fair_clock(clocks, hash);

	/* The clock is earlier if the bound of the overdraft has decided the turn. */
	if (NATRA_READ_ONCE(*clock) < turn_ns || turn_ns <= to_ns ||
	    turn_ns > now_ns + limits->max_overdraft_ns)
		return;
	if (natra_fair_forgive(forgiven_tat_ns, now_ns,
			       (turn_ns - to_ns) * NATRA_FAIR_K_ONE /
				       (NATRA_FAIR_K_ONE + k_more)))
		NATRA_WRITE_ONCE(*clock, to_ns);
}

/* Returns the longest delay of a packet that can be held. A sender without backpressure
 * does not stop before the queue is full, so its queue is a short one. */
natra_inline __u64 natra_fair_longest(const struct natra_limits *limits,
				      bool felt)
{
	return felt ? limits->max_delay_ns : limits->unfelt_delay_ns;
}

/* Judges such a packet by its turn. */
natra_inline enum natra_counter
natra_fair_hold(const struct natra_limits *limits, __u64 now_ns, __u64 turn_ns,
		bool felt)
{
	if (turn_ns <= now_ns)
		return NATRA_COUNT_ADMITTED;
	return turn_ns - now_ns > natra_fair_longest(limits, felt)
		       ? NATRA_COUNT_DROPPED_HORIZON
		       : NATRA_COUNT_PACED;
}

/*
 * Returns from which delay on a heavy flow hears that it sends too much, by marks or drops. A
 * packet that is held waits for others of its flow, so this bounds the queue inside of the
 * flow, which backpressure does not reach: that of a tunnel, of a sender beyond the node, or of
 * datagrams with a congestion control of their own. No flow can have a shorter queue than two
 * packets at its share, so the delay of these is the least. Half of the longest delay there is
 * remains for the chance to rise in.
 */
natra_inline __u64 natra_fair_target(const struct natra_limits *limits,
				     __u32 k_more, __u64 cost_ns, bool felt)
{
	const __u64 most_ns = natra_fair_longest(limits, felt) >> 1;
	const __u64 packet_ns =
		natra_cost_ns(&limits->rate, NATRA_FAIR_PACKET_BYTES, 0);
	__u64 ns = natra_fair_times_k(cost_ns > packet_ns ? cost_ns : packet_ns,
				      k_more)
		   << 1;

	if (ns > most_ns)
		ns = most_ns;
	return ns > limits->target_ns ? ns : limits->target_ns;
}

/*
 * Decides whether a flow hears so of a packet whose delay is over the target by over_ns. The
 * chance is the square of that part of 67 ms, as RFC 9332 has it for senders that halve their
 * window: few signals keep a long queue away from one flow, and many flows get enough of them.
 * A sender that feels no backpressure has all of its waiting packets in this queue, and sends
 * again behind them what is lost, so for its packets it is that part of 33 ms.
 * most is the bound of the part, of NATRA_FAIR_WHOLE. Where the signal is a loss, bytes is the
 * packet's length, and the part is less by as much as a packet is shorter than 1 kB: long packets
 * make the queue, and a tunnel's short ones are requests and acknowledgements, which wait for a
 * timer if they are lost.
 */
natra_inline bool natra_fair_signals(__u64 over_ns, bool felt, __u32 most,
				     __u32 bytes, __u32 random)
{
	__u64 part = over_ns >> (NATRA_FAIR_RAMP_SHIFT - (felt ? 16 : 17));

	if (part > most)
		part = most;
	if (bytes < NATRA_FAIR_LONG_BYTES)
		part = part * bytes >> NATRA_FAIR_LONG_SHIFT;
	return (random & 0xffff) < part && (random >> 16) < part;
}

/*
 * Does so for a sender that answers each mark a little (ECT(1), RFC 9331): the chance rises with
 * the delay itself, from a fourth of the target or a packet at the flow's share, whichever is
 * more, to twice that, where each packet is marked.
 */
natra_inline bool natra_fair_signals_l4s(const struct natra_limits *limits,
					 __u32 k_more, __u64 cost_ns,
					 __u64 delay_ns, __u32 random)
{
	const __u64 least_ns = natra_fair_times_k(cost_ns, k_more);
	__u64 from_ns = limits->target_ns >> NATRA_FAIR_L4S_SHIFT;

	if (from_ns < least_ns)
		from_ns = least_ns;
	return delay_ns > from_ns &&
	       (delay_ns - from_ns) << 16 > from_ns * (random >> 16);
}

#endif
