/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/debts.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "util/clock.h"
#include "../../bpf/natra_bucket.h"
#include "../../bpf/natra_fair.h"

/* A bucket of a state, and the time up to which its debt stays, by their offsets; what it owes in
 * units of the slot that had it, of the limits of that slot, and of those that it gets: see
 * natra_bucket_convert. */
struct debt {
	size_t tat, kept;
	uint64_t from_ns, limits_ns, to_ns;
};

#define DEBTS     7
#define ALL_DEBTS ((1U << DEBTS) - 1)

/* A slot whose debts go to another one, and that one. */
struct heir {
	const struct natra_state *from;
	struct natra_state *to;
	const struct natra_limits *from_limits, *to_limits;
};

/* Raises a bucket that programs use at the same time. */
static void raise_bucket(__u64 *tat_ns, __u64 least_ns)
{
	__u64 have_ns = __atomic_load_n(tat_ns, __ATOMIC_RELAXED);

	while (have_ns < least_ns &&
	       !__atomic_compare_exchange_n(tat_ns, &have_ns, least_ns, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

static __u64 *word_of(const struct natra_state *state, size_t offset)
{
	return (__u64 *)((char *)state + offset);
}

static void list_debts(const struct heir *h, struct debt ret_debts[DEBTS])
{
#define DEBT(member, kept, unit, rate)                                         \
	{                                                                      \
		offsetof(struct natra_state, member),                          \
			offsetof(struct natra_state, kept),                    \
			h->from->unit                                          \
				? h->from->unit                                \
				: natra_debt_unit(&h->from_limits->rate),      \
			natra_debt_unit(&h->from_limits->rate),                \
			natra_debt_unit(&h->to_limits->rate),                  \
	}
	const struct debt debts[DEBTS] = {
		DEBT(fair.tat_ns, kept_ns, settled_ns, rate),
		DEBT(fair.latest_ns, kept_ns, settled_ns, rate),
		DEBT(forgiven_tat_ns, kept_ns, settled_ns, rate),
		DEBT(mice_tat_ns, kept_ns, settled_ns, rate),
		DEBT(tiny_tat_ns, kept_ns, settled_ns, rate),
		DEBT(packets_tat_ns, packets_kept_ns, gates.packets_ns,
		     packets),
		DEBT(connections_tat_ns, connections_kept_ns,
		     gates.connections_ns, connections),
	};
#undef DEBT

	memcpy(ret_debts, debts, sizeof(debts));
}

static void carry_debt(const struct natra_state *from, struct natra_state *to,
		       const struct debt *d, uint64_t least_ns)
{
	const __u64 kept_ns = *word_of(from, d->kept);
	__u64 tat_ns = NATRA_READ_ONCE(*word_of(from, d->tat));

	if (d->to_ns)
		natra_bucket_convert(&tat_ns,
				     least_ns > kept_ns ? least_ns : kept_ns,
				     d->from_ns, d->to_ns);
	raise_bucket(word_of(to, d->tat), tat_ns);
	raise_bucket(word_of(to, d->kept),
		     natra_debt_kept(kept_ns, tat_ns, d->from_ns, d->to_ns));
}

static bool is_same_group(const struct heir *h)
{
	return h->from_limits->member.group == h->to_limits->member.group;
}

static void carry_member(const struct heir *h)
{
	if (!is_same_group(h))
		return;
	raise_bucket(&h->to->member.clock_ns, h->from->member.clock_ns);
	raise_bucket(&h->to->member.floor_ns, h->from->member.floor_ns);
}

/* Lets a slot owe what the one owes that was its class's. */
static void carry_own(const struct heir *h)
{
	const uint64_t least_ns =
		clock_ns(CLOCK_MONOTONIC) + h->to_limits->max_delay_ns;
	struct debt debts[DEBTS];

	list_debts(h, debts);
	for (size_t i = 0; i < DEBTS; i++)
		carry_debt(h->from, h->to, &debts[i], least_ns);
	raise_bucket(&h->to->link_tat_ns, h->from->link_tat_ns);
	carry_member(h);
}

/* Returns the latest time up to which a slot owes because another one does, but for a long packet at the
 * slot's own rate: as far as packets of either may be ahead. One packet of a slow class owes for minutes,
 * and would stop a fast one for as long. */
static uint64_t latest_debt(const struct heir *h)
{
	const uint32_t shift = h->to_limits->fair_shift;
	uint64_t delay_ns = h->from_limits->max_delay_ns;

	if (delay_ns < h->to_limits->max_delay_ns)
		delay_ns = h->to_limits->max_delay_ns;
	return clock_ns(CLOCK_MONOTONIC) + delay_ns +
	       (natra_fair_bound(shift) << shift);
}

/* Lets a slot owe in those buckets for as long as another one does. That stays so at the next
 * change. */
static void carry_time(const struct heir *h, uint32_t buckets)
{
	const uint64_t latest_ns = latest_debt(h);
	struct debt debts[DEBTS];

	list_debts(h, debts);
	for (size_t i = 0; i < DEBTS; i++) {
		const struct debt *d = &debts[i];
		const __u64 most_ns = latest_ns + d->to_ns;
		__u64 tat_ns = NATRA_READ_ONCE(*word_of(h->from, d->tat));

		if (!(buckets & 1U << i))
			continue;
		if (tat_ns > most_ns)
			tat_ns = most_ns;
		raise_bucket(word_of(h->to, d->tat), tat_ns);
		raise_bucket(word_of(h->to, d->kept), tat_ns);
	}
}

/* Returns the buckets whose rate is higher than it was. */
static uint32_t faster(const struct heir *h)
{
	struct debt debts[DEBTS];
	uint32_t buckets = 0;

	list_debts(h, debts);
	for (size_t i = 0; i < DEBTS; i++) {
		if (debts[i].to_ns && debts[i].to_ns < debts[i].limits_ns)
			buckets |= 1U << i;
	}
	return buckets;
}

/* The slots of two legs, or of one at a change. */
struct handing {
	const struct debtors *from, *to;
	const uint32_t *before; /* see debts_hand_over */
	struct natra_state *from_states, *to_states;
};

static struct heir heir_of(const struct handing *h, uint32_t from, uint32_t to)
{
	return (struct heir){&h->from_states[from], &h->to_states[to],
			     &h->from->limits[from], &h->to->limits[to]};
}

static bool is_gone(const struct handing *h, uint32_t from)
{
	for (uint32_t i = 0; i < h->to->count; i++) {
		if (h->before[i] == from)
			return false;
	}
	return true;
}

static void hand_to(const struct handing *h, uint32_t to)
{
	const bool is_new = h->before[to] == DEBTS_NO_SLOT;
	uint32_t buckets = ALL_DEBTS;

	if (!is_new) {
		const struct heir own = heir_of(h, h->before[to], to);

		carry_own(&own);
		buckets = faster(&own);
	}
	if (h->from->count == 1 && h->to->count == 1)
		return;
	for (uint32_t i = 0; i < h->from->count; i++) {
		const struct heir of = heir_of(h, i, to);

		carry_time(&of, !to && is_gone(h, i) ? ALL_DEBTS : buckets);
		if (is_new)
			carry_member(&of);
	}
}

/* Returns all that passed, as programs count it for struct natra_over. */
static uint64_t passed_bytes(const struct natra_state *state)
{
	const struct natra_counters sum = slot_sum(state);

	return sum.count[NATRA_COUNT_MICE].bytes +
	       sum.count[NATRA_COUNT_ADMITTED].bytes +
	       sum.count[NATRA_COUNT_PACED].bytes +
	       sum.count[NATRA_COUNT_MARKED].bytes;
}

/* Lets the new slot's first window have what the old one's last window had. What passed at a
 * higher limit counts as the same part of the new one. */
static void carry_over(const struct natra_state *from,
		       const struct natra_limits *from_limits,
		       struct natra_state *to,
		       const struct natra_limits *to_limits, uint64_t active)
{
	struct natra_over over = from->over;
	uint64_t bytes = passed_bytes(from) - over.passed;

	if (!over.time_ns || !from_limits->over.rate || !to_limits->over.rate)
		return;
	if (to_limits->over.rate < from_limits->over.rate) {
		bytes = (uint64_t)((double)bytes /
				   (double)from_limits->over.rate *
				   (double)to_limits->over.rate);
		if (over.debt > to_limits->over.debt)
			over.debt = to_limits->over.debt;
	}
	over.passed = passed_bytes(to) - bytes;
	over.uncharged = slot_free_bytes(to);
	/* Its groups have not heard of these yet. They never hear of what passed in no group or
	 * in another one, nor again of what they were charged for. */
	if (from_limits->pass == NATRA_PASS_FREE &&
	    from_limits->member.group == to_limits->member.group)
		over.uncharged -= slot_free_bytes(from) - from->over.uncharged;
	over.active = (uint16_t)active;
	to->over = over;
}

int debts_hand_over(struct natra *n, const struct debtors *from,
		    const struct debtors *to, const uint32_t *before)
{
	struct handing h = {from, to, before, NULL, NULL};
	struct slot_states old = {0}, new = {0};
	int r = slot_map(n, &from->slot, from->count, &old);

	if (r == 0)
		r = slot_map(n, &to->slot, to->count, &new);
	h.from_states = old.list;
	h.to_states = new.list;
	for (uint32_t i = 0; i < to->count && r == 0; i++) {
		const struct slot slot = slot_of_class(&to->slot, i);
		struct natra_config config;

		hand_to(&h, i);
		if (before[i] == DEBTS_NO_SLOT)
			continue;
		r = slot_read_config(n, &slot, &config);
		if (r == 0)
			carry_over(&old.list[before[i]],
				   &from->limits[before[i]], &new.list[i],
				   &to->limits[i], config.active);
	}
	slot_unmap(&old);
	slot_unmap(&new);
	return r;
}

int debts_share(struct natra *n, const struct debtors *from,
		const struct natra_limits *to)
{
	const struct debtors after = {from->slot, from->count, to};
	uint32_t same[1 + NATRA_CLASSES_MAX];
	struct handing h = {from, &after, same, NULL, NULL};
	struct slot_states states = {0};
	int r = slot_map(n, &from->slot, from->count, &states);

	h.from_states = h.to_states = states.list;
	for (uint32_t i = 0; i < from->count; i++)
		same[i] = i;
	for (uint32_t i = 0; i < from->count && r == 0; i++)
		hand_to(&h, i);
	slot_unmap(&states);
	return r;
}
