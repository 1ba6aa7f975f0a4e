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

int slot_read_config(struct natra *n, const struct slot *slot,
		     struct natra_config *ret)
{
	int r = bpf_map_lookup_elem(slot->config_fd, &slot->index, ret);

	return r < 0 ? fail_errno(n, r, "read the limits") : 0;
}

int slot_get_limits(struct natra *n, const struct slot *slot,
		    struct natra_limits *ret_limits)
{
	struct natra_config config;
	int r = slot_read_config(n, slot, &config);

	if (r == 0)
		*ret_limits = config.limits[config.active & 1];
	return r;
}

int slot_get_all_limits(struct natra *n, const struct slot *slot,
			uint32_t count, struct natra_limits *ret_limits)
{
	int r = 0;

	for (uint32_t i = 0; i < count && r == 0; i++) {
		const struct slot of = slot_of_class(slot, i);

		r = slot_get_limits(n, &of, &ret_limits[i]);
	}
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

uint64_t slot_free_bytes(const struct natra_state *state)
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
				 slot_free_bytes(states.list));
	slot_unmap(&states);
	return r;
}

int slot_set_limits(struct natra *n, const struct slot *slot,
		    const struct natra_limits *limits)
{
	const struct natra_limits *before;
	struct natra_config config;
	int r = slot_read_config(n, slot, &config);

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

/* Adds an entry to the one before it that has the same flow, if there is one. */
static void join_flow(struct natra_flow_entry *flows, int at)
{
	const struct natra_flow_entry *flow = &flows[at];

	for (int i = 0; i < at; i++) {
		if (flows[i].tag != flow->tag ||
		    memcmp(&flows[i].tuple, &flow->tuple,
			   sizeof(flow->tuple)) != 0)
			continue;
		flows[i].bytes += flow->bytes;
		flows[i].packets += flow->packets;
		if ((int32_t)(flow->last - flows[i].last) > 0)
			flows[i].last = flow->last;
		flows[at].tag = 0;
		return;
	}
}

int slot_flows(struct natra *n, const struct slot *slot,
	       struct natra_flow_entry *ret_flows)
{
	cleanup_free struct natra_state *state = NULL;
	struct natra_config config;
	int r = slot_read_config(n, slot, &config);

	if (r == 0)
		r = slot_read_state(n, slot, &state);
	if (r < 0)
		return r;
	for (int i = 0; i < NATRA_FLOWS; i++) {
		struct natra_flow_entry flow = state->flows[i];

		if (flow.tag !=
		    natra_flow_tag(natra_hash_tuple(config.keys, &flow.tuple)))
			flow.tag = 0;
		/* To a reader a tunnel is one flow, whatever is inside. */
		if (flow.tag && flow.tuple.inner) {
			flow.tuple.inner = 0;
			flow.tag = natra_flow_tag(
				natra_hash_tuple(config.keys, &flow.tuple));
		}
		ret_flows[i] = flow;
		if (flow.tag)
			join_flow(ret_flows, i);
	}
	return 0;
}
