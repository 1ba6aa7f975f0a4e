/* SPDX-License-Identifier: BSD-2-Clause */
#include "policy/policy.h"

#include "../../bpf/natra_bucket.h"
#include "../../bpf/natra_fair.h"
#include "../../bpf/natra_sketch.h"

/* Of a packet on its way from the host side to the pod: interrupts, and the clock of the
 * last tick. */
#define JITTER_NS      50000000ULL
/* Another CPU may have charged so much at the same time: a GSO packet of 64 kB, with the headers of
 * its segments. BIG TCP has longer ones, for which the burst would be long at a low rate. */
#define RACING_BYTES   (1U << 17)
/* Where so much of a burst is left, no packet is dropped by chance. */
#define UNUSED_DIVISOR 16

_Static_assert(UNUSED_DIVISOR < 1 << NATRA_FAIR_SAFE_SHIFT,
	       "no packet is dropped by chance");

static uint64_t add_up(uint64_t a, uint64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

/*
 * Returns how far the bucket may be overdrawn, in the time that this takes at the rate,
 * when the host side passes a packet: heavy flows overdraw it until their shares are
 * found, marks or delays go further, another CPU has just charged a long packet, and
 * small flows that are charged may go before all that.
 */
static uint64_t overdraft_ns(const struct natra_limits *l)
{
	uint64_t ns = natra_fair_bound(l->fair_shift) << l->fair_shift;

	ns = add_up(ns, l->max_delay_ns); /* or max_overdraft_ns */
	ns = add_up(ns, natra_cost_ns(&l->rate, RACING_BYTES, 0));
	/* Their burst is a fourth of this one, and what they leave to others an eighth. */
	return l->pass == NATRA_PASS_FREE ? ns
					  : add_up(ns, l->rate.burst_ns / 2);
}

struct natra_limits policy_backstop(const struct natra_policy *policy)
{
	const bool paced = policy->ingress_mode == NATRA_INGRESS_MODE_PACE;
	struct natra_policy alone = *policy;
	struct natra_limits judge, l;
	uint64_t room_ns, jitter_ns;

	alone.group[0] = '\0';
	judge = policy_limits(&alone, LEG_HOST, paced);
	l = policy_limits(&alone, LEG_INGRESS, false);
	if (!l.rate.mult)
		return l;
	jitter_ns = paced ? add_up(JITTER_NS, judge.max_delay_ns) : JITTER_NS;
	room_ns = add_up(overdraft_ns(&judge), jitter_ns);
	l.rate.burst_ns = add_up(l.rate.burst_ns, room_ns);
	/* Both buckets are charged with the same packets, so this one has at least as much
	 * more in it as its burst is longer. */
	l.rate.burst_ns =
		add_up(l.rate.burst_ns, l.rate.burst_ns / UNUSED_DIVISOR);
	l.mice.burst_ns = add_up(l.mice.burst_ns, room_ns);
	l.packets.burst_ns = add_up(l.packets.burst_ns, jitter_ns);
	l.connections.burst_ns = add_up(l.connections.burst_ns, jitter_ns);
	/* What is small there must be so here, too. Packets that are counted in one window
	 * there may be counted in the next one here, where counts have halved. */
	l.enter_units =
		policy_units((uint64_t)l.enter_units << (NATRA_UNIT_SHIFT + 1));
	l.leave_units = policy_leave_units(l.enter_units);
	l.ramp_mult = UINT64_MAX / l.rate.burst_ns;
	l.over.rate = 0; /* The host side tells. */
	return l;
}
