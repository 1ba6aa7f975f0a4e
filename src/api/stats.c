/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that read counters and flows. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/internal.h"
#include "api/structs.h"
#include "attach/attachment.h"
#include "state/engine.h"
#include "../../bpf/natra_flows.h"

static struct natra_count count_of(const struct natra_counters *c,
				   enum natra_counter which)
{
	return (struct natra_count){
		.packets = c->count[which].packets,
		.bytes = c->count[which].bytes,
	};
}

static int read_leg(struct natra *n, const struct pin_gen *gen, enum leg leg,
		    struct natra_direction_stats *ret)
{
	struct natra_counters c;
	cleanup_slot struct slot slot = SLOT_INIT;
	int r;

	if (!gen->record.leg[leg].hook)
		return 0;
	r = engine_open_slot(n, &gen->record.slot[leg], &slot);
	if (r == -ENOENT)
		return refuse(n, r, "the counters of '%s' are gone",
			      gen->record.id);
	if (r == 0)
		r = slot_counters(n, &slot, &c);
	if (r < 0)
		return r;
	ret->mice = count_of(&c, NATRA_COUNT_MICE);
	ret->admitted = count_of(&c, NATRA_COUNT_ADMITTED);
	ret->paced = count_of(&c, NATRA_COUNT_PACED);
	ret->marked = count_of(&c, NATRA_COUNT_MARKED);
	ret->dropped_rate = count_of(&c, NATRA_COUNT_DROPPED_RATE);
	ret->dropped_horizon = count_of(&c, NATRA_COUNT_DROPPED_HORIZON);
	ret->unlimited = count_of(&c, NATRA_COUNT_UNLIMITED);
	ret->other = count_of(&c, NATRA_COUNT_OTHER);
	ret->delay_ns_sum = c.delay_ns_sum;
	return 0;
}

int natra_stats(struct natra *n, const char *id, struct natra_stats *ret_stats)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_stats stats = {0};
	bool pace;
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = attachment_find(n, id, &gen);
	if (r < 0)
		return r;
	pace = gen.record.leg[LEG_PACE].hook != RECORD_HOOK_NONE;
	r = read_leg(n, &gen, LEG_EGRESS, &stats.egress);
	if (r == 0)
		r = read_leg(n, &gen, LEG_INGRESS,
			     pace ? &stats.backstop : &stats.ingress);
	if (r == 0 && pace)
		r = read_leg(n, &gen, LEG_PACE, &stats.ingress);
	if (r < 0)
		return r;
	return finish(n, struct_out(n, "ret_stats", ret_stats, &stats,
				    sizeof(stats)));
}

static int more_bytes_first(const void *a, const void *b)
{
	const struct natra_flow_entry *x = a;
	const struct natra_flow_entry *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static uint32_t now_ticks(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return natra_flow_now((uint64_t)now.tv_sec * 1000000000ULL +
			      (uint64_t)now.tv_nsec);
}

static struct natra_flow flow_of(const struct natra_flow_entry *entry,
				 uint32_t now)
{
	struct natra_flow flow = {
		.ip_version = entry->tuple.version,
		.protocol = entry->tuple.protocol,
		.bytes = entry->bytes,
		.packets = entry->packets,
		.idle_ns = (uint64_t)(uint32_t)(now - entry->last)
			   << NATRA_FLOW_TICK_SHIFT,
	};
	uint16_t ports[2];

	memcpy(flow.saddr, entry->tuple.saddr, sizeof(flow.saddr));
	memcpy(flow.daddr, entry->tuple.daddr, sizeof(flow.daddr));
	memcpy(ports, &entry->tuple.ports, sizeof(ports));
	flow.sport = ntohs(ports[0]);
	flow.dport = ntohs(ports[1]);
	return flow;
}

int natra_top(struct natra *n, const char *id, enum natra_direction direction,
	      struct natra_flow *ret_flows, size_t *inout_len)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_flow_entry entries[NATRA_FLOWS];
	cleanup_slot struct slot slot = SLOT_INIT;
	enum leg leg = LEG_EGRESS;
	size_t len = 0;
	uint32_t now;
	int r;

	r = require_id(n, id);
	if (r == 0 && (!inout_len || (*inout_len && !ret_flows)))
		r = refuse(n, -EINVAL, "ret_flows, inout_len: missing");
	if (r == 0 && (unsigned int)direction >= NATRA_DIRECTION_MAX)
		r = refuse(n, -EINVAL, "direction: %u", direction);
	if (r == 0)
		r = attachment_find(n, id, &gen);
	if (r < 0)
		return r;
	if (direction == NATRA_DIRECTION_INGRESS)
		leg = gen.record.leg[LEG_PACE].hook ? LEG_PACE : LEG_INGRESS;
	if (!gen.record.leg[leg].hook) {
		*inout_len = 0;
		return finish(n, 0);
	}
	r = engine_open_slot(n, &gen.record.slot[leg], &slot);
	if (r == -ENOENT)
		return refuse(n, r, "the flows of '%s' are gone", id);
	if (r == 0)
		r = slot_flows(n, &slot, entries);
	if (r < 0)
		return r;

	now = now_ticks();
	qsort(entries, NATRA_FLOWS, sizeof(entries[0]), more_bytes_first);
	for (int i = 0; i < NATRA_FLOWS && len < *inout_len; i++) {
		if (entries[i].tag)
			ret_flows[len++] = flow_of(&entries[i], now);
	}
	*inout_len = len;
	return finish(n, 0);
}
