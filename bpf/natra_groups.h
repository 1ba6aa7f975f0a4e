/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Groups: members share a rate, as the heavy flows of a direction do (natra_fair.h).
 * A member is an attachment, or a group in its parent. It has two clocks, and the
 * group has a bucket and the factor K, by which one loop finds the shares:
 *
 *  - The clock moves on by K * cost / weight. A member whose clock is behind takes
 *    less than its share of the group, and does not wait.
 *  - The floor's clock moves on by what the packet takes at the rate of the floor.
 *    A member whose floor's clock is behind is within its floor, and does not wait
 *    either, whatever the others do and wherever K is.
 *
 * A packet's turn is where its member's clock, its floor's clock or the bucket stands,
 * whichever is earliest. So a member has its floor or its share, whichever is more, and
 * what is idle is there for the others in proportion to their weights. All packets that
 * go are charged to the bucket, those within a floor as well: then K grows, and those
 * over their shares wait. Neither clock goes back, so a member's packets keep their
 * order where they are held.
 *
 * The clocks move on from the turn and not from where they stood: what was idle costs
 * nothing later.
 */
#ifndef NATRA_GROUPS_H
#define NATRA_GROUPS_H

#include "natra_bucket.h"
#include "natra_compiler.h"
#include "natra_fair.h"
#include "natra_shared.h"

#define NATRA_GROUP_SHARE_SHIFT 16 /* a share of 2^16 is that of weight 1 */

/* A longer cost counts as this long (6.5 days), or K times it would overflow. */
#define NATRA_GROUP_COST_MAX_NS (1ULL << 49)

/* For how long a member of a group is not alone after another one was charged: 17 s, more than fq
 * may hold a packet. */
#define NATRA_GROUP_ALONE_NS (1ULL << 34)

/* By how much mice that nothing holds may put their member's clock ahead of now. */
#define NATRA_GROUP_AHEAD_NS 100000000ULL

/* Turns of what is policed are told on a scale on which each burst takes as long. */
#define NATRA_GROUP_SCALE_NS (1ULL << 32)

/* Returns the place of a group's direction in the map, + 1. */
natra_inline __u32 natra_group_place(__u32 number, bool egress)
{
	return number ? 2 * (number - 1) + egress + 1 : 0;
}

natra_inline const struct natra_group_limits *
natra_group_limits_of(const struct natra_group *group)
{
	return &group->limits[NATRA_READ_ONCE(group->active) & 1];
}

natra_inline __u64 natra_group_weigh(__u64 ns, __u32 share)
{
	return (ns >> NATRA_GROUP_SHARE_SHIFT) * share +
	       (((ns & ((1U << NATRA_GROUP_SHARE_SHIFT) - 1)) * share) >>
		NATRA_GROUP_SHARE_SHIFT);
}

/* Returns a member's weight. */
natra_inline __u32 natra_group_weight(const struct natra_membership *of)
{
	return of->share ? (1U << NATRA_GROUP_SHARE_SHIFT) / of->share : 1;
}

/* Returns K * cost_ns. */
natra_inline __u64 natra_group_times_k(const struct natra_group *group,
				       __u64 cost_ns)
{
	if (cost_ns > NATRA_GROUP_COST_MAX_NS)
		cost_ns = NATRA_GROUP_COST_MAX_NS;
	return natra_fair_times_k(cost_ns, NATRA_READ_ONCE(group->fair.k_more));
}

/* Returns the group's unit of time, as a shift, for a packet whose longest delay is delay_ns. */
natra_inline __u32 natra_group_shift(const struct natra_group_limits *limits,
				     __u64 delay_ns)
{
	return limits->fair_shift[!!delay_ns] & 63;
}

/* Returns by how much a packet that goes, whose longest delay is delay_ns, may be ahead of its turn
 * for good: one that is marked pays for that in no other way. */
natra_inline __u64 natra_group_ahead(__u64 delay_ns, bool is_mouse)
{
	return delay_ns || !is_mouse ? delay_ns : NATRA_GROUP_AHEAD_NS;
}

/* Returns the time beyond which a clock means nothing, see natra_fair_span. */
natra_inline __u64 natra_group_stale(const struct natra_group *group,
				     const struct natra_group_limits *limits,
				     __u64 now_ns, __u64 delay_ns)
{
	const __u64 longest_ns =
		natra_cost_ns(&limits->rate, NATRA_FAIR_LONGEST_BYTES, 0) +
		(2ULL << natra_group_shift(limits, delay_ns));

	return now_ns + natra_group_ahead(delay_ns, true) +
	       natra_group_times_k(group, longest_ns);
}

/* Returns the same for the clock of a floor, unless that was lower when the clock was set. */
natra_inline __u64 natra_group_floor_stale(const struct natra_membership *of,
					   __u64 now_ns, __u64 delay_ns)
{
	return now_ns + natra_group_ahead(delay_ns, true) +
	       natra_cost_ns(&of->floor, NATRA_FAIR_LONGEST_BYTES, 0);
}

/* Returns the latest turn that was given, or that of a packet which does not wait. */
natra_inline __u64 natra_group_latest(const struct natra_group *group,
				      const struct natra_group_limits *limits,
				      __u64 now_ns, __u64 delay_ns)
{
	const __u64 latest_ns = NATRA_READ_ONCE(group->fair.latest_ns);
	const __u64 base_ns =
		delay_ns ? now_ns
			 : natra_fair_before(now_ns, limits->rate.burst_ns);

	return latest_ns > base_ns ? latest_ns : base_ns;
}

/* Returns the turn that a member has without its floor. */
natra_inline __u64 natra_group_share_turn(
	const struct natra_group *group,
	const struct natra_group_limits *limits,
	const struct natra_member *member, __u64 now_ns, __u64 delay_ns)
{
	const __u32 shift = natra_group_shift(limits, delay_ns);
	const __u64 full_ns = natra_fair_before(now_ns, limits->rate.burst_ns);
	__u64 tat_ns = NATRA_READ_ONCE(group->fair.tat_ns), least_ns;
	__u64 turn_ns = NATRA_READ_ONCE(member->clock_ns);

	if (tat_ns < full_ns)
		tat_ns = full_ns;
	/* The overdraft is bounded. */
	least_ns = natra_fair_before(tat_ns, natra_fair_bound(shift) << shift);
	if (turn_ns < least_ns &&
	    least_ns > natra_group_latest(group, limits, now_ns, delay_ns))
		turn_ns = least_ns;
	return turn_ns < tat_ns ? turn_ns : tat_ns;
}

/*
 * Returns the turn of a member's packet, whose longest delay is delay_ns; 0 stands for
 * a packet that is policed. Turns of what is held begin with the present and a credit
 * (see natra_fair.h), and others a burst ago.
 */
natra_inline __u64 natra_group_turn(const struct natra_group *group,
				    const struct natra_group_limits *limits,
				    const struct natra_membership *of,
				    const struct natra_member *member,
				    __u64 now_ns, __u64 delay_ns)
{
	__u64 low_ns = natra_fair_before(now_ns, limits->rate.burst_ns);
	__u64 turn_ns =
		natra_group_share_turn(group, limits, member, now_ns, delay_ns);

	if (of->floor.mult) {
		const __u64 floor_ns = NATRA_READ_ONCE(member->floor_ns);

		if (turn_ns > floor_ns)
			turn_ns = floor_ns;
	}
	if (delay_ns) {
		const __u64 credit_ns = natra_fair_before(
			now_ns, (__u64)NATRA_FAIR_CREDIT
					<< natra_group_shift(limits, delay_ns));

		if (low_ns < credit_ns)
			low_ns = credit_ns;
	}
	return turn_ns > low_ns ? turn_ns : low_ns;
}

/* Returns whether members took turns of late. */
natra_inline bool natra_group_has_met(__u64 met_ns, __u64 now_ns)
{
	return met_ns && met_ns + NATRA_GROUP_ALONE_NS >= now_ns;
}

/* Returns whether no other member than this one was charged of late, or none at all. */
natra_inline bool natra_group_is_alone(const struct natra_group *group,
				       __u32 member_id, __u64 now_ns)
{
	const __u32 last = NATRA_READ_ONCE(group->last_member);

	return (!last || last == member_id) &&
	       !natra_group_has_met(NATRA_READ_ONCE(group->met_ns), now_ns);
}

/* Returns whether others came so short a time ago that fq may still hold what a member sent that was
 * alone until then. */
natra_inline bool natra_group_is_new(const struct natra_group *group,
				     __u64 now_ns, __u64 delay_ns)
{
	return (__u32)(now_ns >> NATRA_FAIR_TICK_SHIFT) -
		       NATRA_READ_ONCE(group->met_since) <=
	       delay_ns >> NATRA_FAIR_TICK_SHIFT;
}

/* Notes that this member is charged. Members that take turns write once in a tick. */
natra_inline void natra_group_meet(struct natra_group *group, __u32 member_id,
				   __u64 now_ns)
{
	const __u32 last = NATRA_READ_ONCE(group->last_member);
	const __u64 met_ns = NATRA_READ_ONCE(group->met_ns);

	if (last == member_id ||
	    met_ns >> NATRA_FAIR_TICK_SHIFT == now_ns >> NATRA_FAIR_TICK_SHIFT)
		return;
	NATRA_WRITE_ONCE(group->last_member, member_id);
	if (!last)
		return;
	if (!natra_group_has_met(met_ns, now_ns))
		NATRA_WRITE_ONCE(group->met_since,
				 (__u32)(now_ns >> NATRA_FAIR_TICK_SHIFT));
	NATRA_WRITE_ONCE(group->met_ns, now_ns);
}

/* Returns whether the turns of a member's packets are those of a clock of its own, which leaves
 * room between them: K has found that others want some. */
natra_inline bool natra_group_is_spaced(const struct natra_group *group,
					const struct natra_membership *of,
					const struct natra_member *seen,
					__u64 turn_ns)
{
	const __u64 k =
		NATRA_FAIR_K_ONE + (__u64)NATRA_READ_ONCE(group->fair.k_more);
	const __u64 one = (__u64)NATRA_FAIR_K_ONE << NATRA_GROUP_SHARE_SHIFT;

	return turn_ns < NATRA_READ_ONCE(group->fair.tat_ns) &&
	       (turn_ns == seen->floor_ns ||
		(turn_ns == seen->clock_ns && k * of->share > one + one / 32));
}

/*
 * Returns whether a held packet, the turn of which was found by the clocks `seen`, is refused
 * because it is too far ahead. What fq holds has its time for good: a member that took all of the
 * next seconds while others are silent would leave them the overdraft alone. So unless its turns
 * leave room for the others, they are at most the bound of the overdraft from now, which is what the
 * others can have meanwhile. Mice have half as much again, since heavy flows of their own member
 * would leave them nothing. Who is alone may wait as long as it likes, and when another one comes
 * all go in the order of their turns until fq has let go what it held.
 */
natra_inline bool natra_group_is_early(const struct natra_group *group,
				       const struct natra_group_limits *limits,
				       const struct natra_membership *of,
				       const struct natra_member *seen,
				       __u32 member_id, __u64 now_ns,
				       __u64 delay_ns, __u64 turn_ns,
				       bool is_mouse)
{
	const __u32 shift = natra_group_shift(limits, delay_ns);
	const __u64 ahead_ns = natra_fair_bound(shift) << shift;

	return delay_ns &&
	       turn_ns > now_ns + ahead_ns + (is_mouse ? ahead_ns / 2 : 0) &&
	       !natra_group_is_spaced(group, of, seen, turn_ns) &&
	       !natra_group_is_new(group, now_ns, delay_ns) &&
	       !natra_group_is_alone(group, member_id, now_ns);
}

/* Returns the clocks of a member, by which a packet's turn is found and which it moves on. */
natra_inline struct natra_member
natra_group_clocks(const struct natra_member *member)
{
	return (struct natra_member){
		.clock_ns = NATRA_READ_ONCE(member->clock_ns),
		.floor_ns = NATRA_READ_ONCE(member->floor_ns),
	};
}

/* Returns the turn of a packet that is judged, which if it is refused is beyond its longest delay. */
natra_inline __u64 natra_group_judge(const struct natra_group *group,
				     const struct natra_group_limits *limits,
				     const struct natra_membership *of,
				     const struct natra_member *member,
				     __u32 member_id, __u64 now_ns,
				     __u64 delay_ns, bool is_mouse)
{
	const struct natra_member seen = natra_group_clocks(member);
	const __u64 turn_ns =
		natra_group_turn(group, limits, of, &seen, now_ns, delay_ns);

	return natra_group_is_early(group, limits, of, &seen, member_id, now_ns,
				    delay_ns, turn_ns, is_mouse)
		       ? now_ns + delay_ns + 1
		       : turn_ns;
}

/*
 * Moves a clock on by step_ns from the turn that was found when it stood at seen_ns. One that
 * means nothing, because it is too far ahead, is set: since no turn is later than the bucket,
 * only this one packet has waited for it. If another CPU was faster, both packets had the same
 * turn, so the step is added to where that one has put the clock.
 */
natra_inline void natra_group_advance(__u64 *clock_ns, __u64 seen_ns,
				      __u64 turn_ns, __u64 step_ns,
				      __u64 stale_ns)
{
	const __u64 end_ns = turn_ns + step_ns;

	if (seen_ns >= end_ns && seen_ns <= stale_ns)
		return;
	if (__sync_val_compare_and_swap(clock_ns, seen_ns, end_ns) != seen_ns)
		__sync_fetch_and_add(clock_ns, step_ns);
}

/* Charges a member's packet that goes, whose turn in the group was found by the clocks `seen`,
 * to the clocks of the member. */
natra_inline void natra_group_charge_member(
	const struct natra_group *group,
	const struct natra_group_limits *limits,
	const struct natra_membership *of, struct natra_member *member,
	const struct natra_member *seen, __u64 now_ns, __u64 delay_ns,
	__u64 turn_ns, __u64 cost_ns, __u64 floor_cost_ns)
{
	const __u64 step_ns = natra_group_weigh(
		natra_group_times_k(group, cost_ns), of->share);

	natra_group_advance(&member->clock_ns, seen->clock_ns, turn_ns, step_ns,
			    natra_group_stale(group, limits, now_ns, delay_ns));
	if (of->floor.mult)
		natra_group_advance(
			&member->floor_ns, seen->floor_ns, turn_ns,
			floor_cost_ns,
			natra_group_floor_stale(of, now_ns, delay_ns));
}

/* Charges it to the group, ahead of which it may be by ahead_ns (natra_group_ahead). */
natra_inline void natra_group_charge(struct natra_group *group,
				     const struct natra_group_limits *limits,
				     __u64 now_ns, __u64 ahead_ns,
				     __u64 turn_ns, __u64 cost_ns, __u32 bytes)
{
	const __u64 full_ns = natra_fair_before(now_ns, limits->rate.burst_ns);
	const __u64 tat_ns = NATRA_READ_ONCE(group->fair.tat_ns);

	/* A packet that is marked goes before its turn, which is not the latest then: see
	 * natra_fair_charge. That of a mouse is, although it does not wait: if what it is
	 * ahead were an overdraft, which it is for as long as there are others, K would
	 * grow without end, and leave its member what others' clocks do not let them have. */
	if (turn_ns > now_ns + ahead_ns)
		turn_ns = now_ns + ahead_ns;

	/* A bucket that is full is set by one CPU; all others add to it. */
	if (tat_ns >= full_ns ||
	    __sync_val_compare_and_swap(&group->fair.tat_ns, tat_ns,
					full_ns + cost_ns) != tat_ns)
		__sync_fetch_and_add(&group->fair.tat_ns, cost_ns);
	if (turn_ns > NATRA_READ_ONCE(group->fair.latest_ns))
		NATRA_WRITE_ONCE(group->fair.latest_ns, turn_ns);
	__sync_fetch_and_add(&group->charged.packets, 1);
	__sync_fetch_and_add(&group->charged.bytes, bytes);
}

/*
 * Returns the turn of a policed packet as a time on the scale of all groups: where its
 * burst is of NATRA_GROUP_SCALE_NS. A turn that is still to come stays the same there.
 */
natra_inline __u64 natra_group_to_scale(const struct natra_group_limits *limits,
					__u64 now_ns, __u64 turn_ns)
{
	if (turn_ns >= now_ns)
		return turn_ns;
	if (now_ns - turn_ns >= natra_fair_safe(limits->rate.burst_ns, now_ns))
		return 0;
	return natra_fair_before(
		now_ns, ((now_ns - turn_ns) * limits->ramp_mult) >> 32);
}

/* Returns such a turn as one of a bucket with another burst. */
natra_inline __u64 natra_group_from_scale(__u64 burst_ns, __u64 now_ns,
					  __u64 scaled_ns)
{
	__u64 parts;

	if (scaled_ns >= now_ns)
		return scaled_ns;
	parts = now_ns - scaled_ns;
	if (parts >= NATRA_GROUP_SCALE_NS)
		return 0;
	return natra_fair_before(
		now_ns, (burst_ns >> 32) * parts +
				((burst_ns << 32 >> 32) * parts >> 32));
}

/*
 * Returns whether a mouse that is charged (NATRA_PASS_STRICT) is dropped for the group's
 * sake. It does not wait, and goes before the heavy flows of its member, which leave
 * their clock behind this time.
 */
natra_inline bool natra_group_refuses(__u64 now_ns, __u64 delay_ns,
				      __u64 turn_ns)
{
	return turn_ns > now_ns + natra_group_ahead(delay_ns, true);
}

#endif
