/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* How the programs judge members of groups, see natra_groups.h. The verifier removes
 * all of it from programs without has_groups. */
#ifndef NATRA_GROUPS_BPF_H
#define NATRA_GROUPS_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

#include "natra_fair.bpf.h"
#include "natra_groups.h"
#include "natra_maps.bpf.h"
#include "natra_packet.bpf.h"
#include "natra_shared.h"

/* Before Linux 6.8 the verifier also looks at global functions that nobody calls. So each
 * that would look into the map, which is not there without has_groups, asks for that
 * first. */
static __always_inline struct natra_group *group_at(__u32 place)
{
	const __u32 index = place - 1;

	return bpf_map_lookup_elem(&natra_groups, &index);
}

/*
 * Returns the turn of a member's packet in one group, 0 if that has no rate, and one beyond
 * delay_ns if the packet is refused. Its frame is one of three below that of natra_shape,
 * which have 512 bytes together before Linux 6.3: so a packet is charged by another
 * function.
 */
natra_global __u64 group_turn_global(const struct natra_membership *of,
				     const struct natra_member *member,
				     const struct packet *packet,
				     __u64 delay_ns, __u32 member_id)
{
	const struct natra_group_limits *limits;
	struct natra_group *group;
	__u64 now_ns;

	if (!natra_fixed.has_groups || !of || !member || !packet)
		return 0; /* the verifier wants this check */
	now_ns = packet->now_ns;
	group = group_at(of->group);
	if (!group)
		return 0;
	limits = natra_group_limits_of(group);
	if (!limits->rate.mult)
		return 0;
	if (now_ns >> NATRA_FAIR_TICK_SHIFT !=
	    NATRA_READ_ONCE(group->fair.tick))
		(void)adapt_global(
			&group->fair, now_ns,
			natra_group_latest(group, limits, now_ns, delay_ns),
			natra_group_shift(limits, delay_ns),
			natra_group_weight(of));
	return natra_group_judge(group, limits, of, member, member_id, now_ns,
				 delay_ns, packet->mouse);
}

/* Charges a packet. What its turn is now counts, for another CPU may have moved the clocks
 * on since it was judged. */
natra_global int group_charge_global(const struct natra_membership *of,
				     struct natra_member *member,
				     const struct packet *packet,
				     __u64 delay_ns, __u32 member_id)
{
	const struct natra_group_limits *limits;
	struct natra_member seen;
	struct natra_group *group;
	__u64 cost_ns, dither, turn_ns;

	if (!natra_fixed.has_groups || !of || !member || !packet)
		return 0; /* the verifier wants this check */
	group = group_at(of->group);
	if (!group)
		return 0;
	limits = natra_group_limits_of(group);
	if (!limits->rate.mult)
		return 0;
	dither = natra_dither(NATRA_READ_ONCE(group->fair.tat_ns) +
			      ((__u64)packet->seed << 32));
	cost_ns = natra_cost_ns(&limits->rate, packet->bytes, dither);
	seen = natra_group_clocks(member);
	turn_ns = natra_group_turn(group, limits, of, &seen, packet->now_ns,
				   delay_ns);
	natra_group_charge_member(
		group, limits, of, member, &seen, packet->now_ns, delay_ns,
		turn_ns, cost_ns,
		natra_cost_ns(&of->floor, packet->bytes, dither));
	if (packet->charged)
		return 0;
	natra_group_charge(group, limits, packet->now_ns,
			   natra_group_ahead(delay_ns, packet->mouse), turn_ns,
			   cost_ns, packet->bytes);
	natra_group_meet(group, member_id, packet->now_ns);
	return 0;
}

/* Judges a packet by one group, or charges it there. Returns its turn, which for one
 * that is policed (delay_ns is 0) is on the scale of all groups. */
static __always_inline __u64 group_level(const struct natra_membership *of,
					 struct natra_member *member,
					 const struct packet *packet,
					 __u64 delay_ns, __u32 member_id,
					 bool charges)
{
	struct natra_group *group;
	__u64 turn_ns;

	if (charges)
		return (__u32)group_charge_global(of, member, packet, delay_ns,
						  member_id);
	turn_ns = group_turn_global(of, member, packet, delay_ns, member_id);
	if (delay_ns)
		return turn_ns;
	group = group_at(of->group);
	return group ? natra_group_to_scale(natra_group_limits_of(group),
					    packet->now_ns, turn_ns)
		     : 0;
}

/*
 * Judges a packet of an attachment by its group and by the parent of that, or charges
 * both: it is judged by one call, and charged by another if it goes. delay_ns is its
 * longest delay, 0 if it is policed. Returns the later of both turns, 0 if the
 * attachment is in no group.
 */
natra_global __u64 group_global(struct __sk_buff *skb,
				const struct natra_config *config,
				const struct packet *packet, __u64 delay_ns,
				bool charges)
{
	const struct natra_membership *of;
	struct natra_member *member;
	struct natra_group *group;
	struct natra_state *state;
	__u64 turn_ns, upper_ns;
	__u32 place;

	if (!natra_fixed.has_groups || !config || !packet)
		return 0; /* the verifier wants this check */
	of = &limits_of(config, packet->active)->member;
	state = state_of_all(skb, config);
	if (!of->group || !state)
		return 0;
	member = &state->member;
	/* This half of the owner is the attachment's, also after it was attached anew. */
	turn_ns = group_level(of, member, packet, delay_ns,
			      (__u32)(config->owner >> 32), charges);
	group = group_at(of->group);
	if (!group)
		return turn_ns;
	place = of->group;
	of = &natra_group_limits_of(group)->parent;
	if (!of->group || (charges && packet->charged))
		return turn_ns;
	upper_ns = group_level(of, &group->member, packet, delay_ns, place,
			       charges);
	return upper_ns > turn_ns ? upper_ns : turn_ns;
}

/* Returns the longest delay of a packet, 0 if it is policed. */
static __always_inline __u64 group_delay(const struct natra_limits *limits,
					 bool held)
{
	return held ? limits->max_delay_ns : 0;
}

/*
 * Returns whether the attachment that takes the place of this one has charged the groups for the
 * packet. Until this one is removed both judge each packet. On the same hook the newer one comes
 * first, and leaves the owner of this one in the packet, which nobody else knows. The mark is
 * taken away: what comes here again is another packet. Where the newer one is at another place
 * (another kind of hook, or the other side) and this one comes first, both charge the groups in
 * this moment.
 */
static __always_inline bool take_mark(struct __sk_buff *skb,
				      const struct natra_config *config)
{
	const bool charged = skb->cb[1] == (__u32)config->owner &&
			     skb->cb[2] == (__u32)(config->owner >> 32);

	if (charged || config->replaces) {
		skb->cb[1] = (__u32)config->replaces;
		skb->cb[2] = (__u32)(config->replaces >> 32);
	}
	return charged;
}

/*
 * Asks the groups, for charge(): the packet is not to depart before group_ns, which of
 * a policed one is on the scale of all groups. They have let go what is charged. The exact
 * clock is needed here, and so now_ns is exact from here on.
 */
static __always_inline void group_ask(struct __sk_buff *skb,
				      const struct natra_config *config,
				      const struct natra_limits *limits,
				      struct packet *packet, bool held)
{
	packet->now_ns = bpf_ktime_get_ns();
	packet->charged = take_mark(skb, config);
	packet->group_ns =
		packet->charged
			? 0
			: group_global(skb, config, packet,
				       group_delay(limits, held), false);
}

/* Charges the groups for a packet that goes, or if that is done the clocks of the member, which
 * the newer attachment takes over. */
static __always_inline void group_charge(struct __sk_buff *skb,
					 const struct natra_config *config,
					 const struct natra_limits *limits,
					 const struct packet *packet, bool held)
{
	(void)group_global(skb, config, packet, group_delay(limits, held),
			   true);
}

/*
 * Lowers the sizes from which on a flow is heavy to those of the group: what is much of a
 * group may be little of its member. Returns whether anything limits the member's packets:
 * neither a group nor its parent does if it has no such size.
 */
static __always_inline bool group_threshold(const struct natra_limits *limits,
					    __u32 *enter, __u32 *leave)
{
	struct natra_group *group = group_at(limits->member.group);
	__u32 units = 0;

	if (group)
		units = natra_group_limits_of(group)->enter_units;
	if (!units)
		return !limits->by_group;
	if (units < *enter) {
		*enter = units;
		*leave = natra_group_limits_of(group)->leave_units;
	}
	return true;
}

#endif
