/* SPDX-License-Identifier: BSD-2-Clause */
#include "state/slot.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/clock.h"
#include "../../bpf/natra_bucket.h"
#include "../../bpf/natra_flows.h"
#include "../../bpf/natra_hash.h"

void slot_close(struct slot *slot)
{
	cleanup_closep(&slot->config_fd);
	cleanup_closep(&slot->state_fd);
	*slot = (struct slot)SLOT_INIT;
}

static int read_config(struct natra *n, const struct slot *slot,
		       struct natra_config *ret)
{
	int r = bpf_map_lookup_elem(slot->config_fd, &slot->index, ret);

	return r < 0 ? fail_errno(n, r, "read the limits") : 0;
}

int slot_get_limits(struct natra *n, const struct slot *slot,
		    struct natra_limits *ret_limits)
{
	struct natra_config config;
	int r = read_config(n, slot, &config);

	if (r == 0)
		*ret_limits = config.limits[config.active & 1];
	return r;
}

static int write_config(const struct slot *slot,
			const struct natra_config *config)
{
	return bpf_map_update_elem(slot->config_fd, &slot->index, config,
				   BPF_EXIST);
}

int slot_read_state(struct natra *n, const struct slot *slot,
		    struct natra_state **ret_state)
{
	cleanup_free struct natra_state *state = malloc(sizeof(*state));
	int r;

	if (!state)
		return fail_errno(n, -ENOMEM, "read a map");
	r = bpf_map_lookup_elem(slot->state_fd, &slot->index, state);
	if (r < 0)
		return fail_errno(n, r, "read a map");
	*ret_state = TAKE_PTR(state);
	return 0;
}

int slot_map(struct natra *n, const struct slot *slot, uint32_t count,
	     struct slot_states *ret_states)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t begin = slot->index * sizeof(struct natra_state);
	const size_t from = begin / page * page;
	const size_t size = begin - from + count * sizeof(struct natra_state);
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
			 slot->state_fd, (off_t)from);

	if (map == MAP_FAILED)
		return fail_errno(n, -errno, "map the states");
	*ret_states = (struct slot_states){
		.list = (void *)((char *)map + (begin - from)),
		.map = map,
		.size = size,
	};
	return 0;
}

void slot_unmap(struct slot_states *states)
{
	if (states->map)
		(void)munmap(states->map, states->size);
	*states = (struct slot_states){0};
}

/* A bucket of a state, and the time up to which its debt stays, by their offsets; the units of
 * what it owes there and in the state that takes over, see natra_bucket_convert. */
struct debt {
	size_t tat, kept;
	uint64_t from_ns, to_ns;
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

static void carry_debts(const struct natra_state *from,
			const struct natra_limits *from_limits,
			struct natra_state *to,
			const struct natra_limits *to_limits)
{
#define DEBT(member, kept, unit, rate)                                         \
	{                                                                      \
		offsetof(struct natra_state, member),                          \
			offsetof(struct natra_state, kept),                    \
			from->unit ? from->unit                                \
				   : natra_debt_unit(&from_limits->rate),      \
			natra_debt_unit(&to_limits->rate),                     \
	}
	const struct debt debts[] = {
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
	const uint64_t least_ns =
		clock_ns(CLOCK_MONOTONIC) + to_limits->max_delay_ns;

	for (size_t i = 0; i < sizeof(debts) / sizeof(*debts); i++)
		carry_debt(from, to, &debts[i], least_ns);
	raise_bucket(&to->link_tat_ns, from->link_tat_ns);
	if (from_limits->member.group != to_limits->member.group)
		return;
	raise_bucket(&to->member.clock_ns, from->member.clock_ns);
	raise_bucket(&to->member.floor_ns, from->member.floor_ns);
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

static uint64_t free_bytes(const struct natra_state *state)
{
	return slot_sum(state).count[NATRA_COUNT_MICE].bytes;
}

/* Lets the groups of a slot hear of no free bytes before these. Programs charge small flows that
 * are not free to the groups themselves, and count them as the free ones. */
static int hear_from_now_on(struct natra *n, const struct slot *slot)
{
	struct slot_states states = {0};
	int r = slot_map(n, slot, 1, &states);

	if (r == 0)
		NATRA_WRITE_ONCE(states.list->over.uncharged,
				 free_bytes(states.list));
	slot_unmap(&states);
	return r;
}

int slot_set_limits(struct natra *n, const struct slot *slot,
		    const struct natra_limits *limits)
{
	const struct natra_limits *before;
	struct natra_config config;
	int r = read_config(n, slot, &config);

	if (r < 0)
		return r;
	before = &config.limits[config.active & 1];
	if (limits->pass == NATRA_PASS_FREE &&
	    (before->pass != NATRA_PASS_FREE ||
	     before->member.group != limits->member.group))
		r = hear_from_now_on(n, slot);
	if (r < 0)
		return r;
	config.limits[(config.active & 1) ^ 1] = *limits;
	r = write_config(slot, &config);
	if (r == 0) {
		config.active++;
		r = write_config(slot, &config);
	}
	return r < 0 ? fail_errno(n, r, "write the limits") : 0;
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
	over.uncharged = free_bytes(to);
	/* Its groups have not heard of these yet. They never hear of what passed in no group or
	 * in another one, nor again of what they were charged for. */
	if (from_limits->pass == NATRA_PASS_FREE &&
	    from_limits->member.group == to_limits->member.group)
		over.uncharged -= free_bytes(from) - from->over.uncharged;
	over.active = (uint16_t)active;
	to->over = over;
}

int slot_carry_debts(struct natra *n, const struct slot *from,
		     const struct slot *to)
{
	struct slot_states old = {0}, new = {0};
	struct natra_limits from_limits, to_limits;
	struct natra_config config;
	int r = slot_get_limits(n, from, &from_limits);

	if (r == 0)
		r = read_config(n, to, &config);
	if (r == 0)
		r = slot_map(n, from, 1, &old);
	if (r == 0)
		r = slot_map(n, to, 1, &new);
	if (r == 0) {
		to_limits = config.limits[config.active & 1];
		carry_debts(old.list, &from_limits, new.list, &to_limits);
		carry_over(old.list, &from_limits, new.list, &to_limits,
			   config.active);
	}
	slot_unmap(&old);
	slot_unmap(&new);
	return r;
}

static void add_durations(struct natra_durations *sum,
			  const struct natra_durations *durations)
{
	sum->sum_ns += durations->sum_ns;
	for (int i = 0; i < NATRA_DURATION_BUCKETS; i++)
		sum->count[i] += durations->count[i];
}

static void add_tally(struct natra_tally *sum, const struct natra_tally *tally)
{
	sum->packets += tally->packets;
	sum->bytes += tally->bytes;
}

struct natra_counters slot_sum(const struct natra_state *state)
{
	struct natra_counters sum = {0};

	for (int i = 0; i < NATRA_STRIPES; i++) {
		const struct natra_stripe *stripe = &state->stripes[i];

		for (int j = 0; j < NATRA_COUNT_MAX; j++)
			add_tally(&sum.count[j], &stripe->count[j]);
		add_tally(&sum.over_packets, &stripe->over_packets);
		add_tally(&sum.over_connections, &stripe->over_connections);
		add_durations(&sum.delays, &stripe->delays);
	}
	return sum;
}

uint32_t slot_flow_now(void)
{
	return natra_flow_now(clock_ns(CLOCK_MONOTONIC));
}

int slot_flows(struct natra *n, const struct slot *slot,
	       struct natra_flow_entry *ret_flows)
{
	cleanup_free struct natra_state *state = NULL;
	struct natra_config config;
	int r = read_config(n, slot, &config);

	if (r == 0)
		r = slot_read_state(n, slot, &state);
	if (r < 0)
		return r;
	for (int i = 0; i < NATRA_FLOWS; i++) {
		struct natra_flow_entry flow = state->flows[i];

		if (flow.tag !=
		    natra_flow_tag(natra_hash_tuple(config.keys, &flow.tuple)))
			flow.tag = 0;
		ret_flows[i] = flow;
	}
	return 0;
}
