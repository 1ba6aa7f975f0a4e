/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that read counters and flows. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/internal.h"
#include "api/structs.h"
#include "attach/attachment.h"
#include "state/engine.h"
#include "state/pin_dir.h"
#include "state/view.h"
#include "util/cleanup.h"
#include "util/str.h"
#include "../../bpf/natra_durations.h"

static struct natra_count count_of(const struct natra_tally *tally)
{
	return (struct natra_count){
		.packets = tally->packets,
		.bytes = tally->bytes,
	};
}

_Static_assert(NATRA_HISTOGRAM_BUCKETS == NATRA_DURATION_BUCKETS &&
		       NATRA_HISTOGRAM_UP_TO(0) == 1 << NATRA_DURATION_SHIFT,
	       "the same buckets");

static struct natra_histogram histogram_of(const struct natra_durations *d)
{
	struct natra_histogram histogram = {.sum_ns = d->sum_ns};

	memcpy(histogram.count, d->count, sizeof(histogram.count));
	return histogram;
}

static int read_leg(struct natra *n, struct views *views,
		    const struct record *record, uint32_t number, enum leg leg,
		    struct natra_direction_stats *ret, uint32_t *ret_flows,
		    struct natra_histogram *ret_delays,
		    struct natra_connects *ret_connects)
{
	struct record_slot slot = record->slot[leg];
	struct view_counters view;
	struct natra_counters c;
	int r;

	if (!record->leg[leg].hook)
		return 0;
	slot.index += number;
	r = views_read(n, views, &slot, &view);
	if (r == -ENOENT)
		return refuse(n, r, "the counters of '%s' are gone",
			      record->id);
	if (r < 0)
		return r;
	c = view.counters;
	ret->mice = count_of(&c.count[NATRA_COUNT_MICE]);
	ret->admitted = count_of(&c.count[NATRA_COUNT_ADMITTED]);
	ret->paced = count_of(&c.count[NATRA_COUNT_PACED]);
	ret->marked = count_of(&c.count[NATRA_COUNT_MARKED]);
	ret->dropped_rate = count_of(&c.count[NATRA_COUNT_DROPPED_RATE]);
	ret->dropped_horizon = count_of(&c.count[NATRA_COUNT_DROPPED_HORIZON]);
	ret->unlimited = count_of(&c.count[NATRA_COUNT_UNLIMITED]);
	ret->other = count_of(&c.count[NATRA_COUNT_OTHER]);
	ret->over_packets = count_of(&c.over_packets);
	ret->over_connections = count_of(&c.over_connections);
	ret->delay_sum_ns = c.delays.sum_ns;
	ret->events_reported = view.events_reported;
	ret->events_suppressed = view.events_suppressed;
	ret->over_limit_time_ns = view.over_ns;
	ret->over_limit_percent = view.over_percent;
	*ret_flows = view.heavy_flows;
	*ret_delays = histogram_of(&c.delays);
	*ret_connects = view.connects;
	return 0;
}

/* Makes the figures of one direction's connections: one program has seen their SYNs,
 * and the other one the answers. */
static struct natra_connect_stats
connects_of(const struct natra_connects *syns,
	    const struct natra_connects *answers)
{
	return (struct natra_connect_stats){
		.begun = syns->begun,
		.repeated = syns->repeated,
		.forgotten = syns->forgotten,
		.refused = answers->refused,
		.accepted = histogram_of(&answers->answers),
	};
}

/* Reads the counters of a class, by its number, or with 0 those of the rest. */
static int read_stats(struct natra *n, struct views *views,
		      const struct record *record, uint32_t number,
		      struct natra_stats *ret)
{
	const bool host = record->leg[LEG_HOST].hook != RECORD_HOOK_NONE;
	struct natra_connects in = {0}, out = {0}, at_host = {0};
	uint32_t in_pod;
	int r;

	*ret = (struct natra_stats){.sz = sizeof(*ret)};
	r = read_leg(n, views, record, number, LEG_EGRESS, &ret->egress,
		     &ret->egress_heavy_flows, &ret->egress_delays, &out);
	if (r == 0)
		r = read_leg(n, views, record, number, LEG_INGRESS,
			     host ? &ret->backstop : &ret->ingress,
			     &ret->ingress_heavy_flows, &ret->ingress_delays,
			     &in);
	in_pod = ret->ingress_heavy_flows;
	if (r == 0 && host)
		r = read_leg(n, views, record, number, LEG_HOST, &ret->ingress,
			     &ret->ingress_heavy_flows, &ret->ingress_delays,
			     &at_host);
	/* Where it is the only program into the pod, it measures. */
	if (!record->leg[LEG_INGRESS].hook)
		in = at_host;
	/* What comes past the host side is in the backstop's table alone. */
	if (host && ret->ingress_heavy_flows < in_pod)
		ret->ingress_heavy_flows = in_pod;
	ret->ingress_connects = connects_of(&in, &out);
	ret->egress_connects = connects_of(&out, &in);
	return r;
}

/* Returns whether a newer generation has taken the place of one whose parts are gone. A bank may
 * be another one by then, so none stays open. */
static bool look_again(struct natra *n, const char *id, struct pin_gen *gen,
		       struct views *views)
{
	views_close(views);
	return attachment_find_newer(n, id, gen);
}

int natra_stats(struct natra *n, const char *id, struct natra_stats *ret_stats)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_views struct views views = {0};
	struct natra_stats stats;
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = attachment_find(n, id, &gen);
	if (r < 0)
		return r;
	do {
		r = read_stats(n, &views, &gen.record, 0, &stats);
	} while (r == -ENOENT && look_again(n, id, &gen, &views));
	if (r < 0)
		return r;
	return finish(
		n, struct_out(n, "ret_stats", ret_stats, EXTENT_STATS, &stats));
}

/* Finds a class by its name. Returns its number, or -ENOENT. */
static int find_class(struct natra *n, const struct pin_gen *gen,
		      const char *name)
{
	struct record_classes classes;
	int r = record_slots(&gen->record) > 1
			? pin_read_classes(n, gen, &classes)
			: -ENOENT;

	for (uint32_t i = 1; i < record_slots(&gen->record) && r == 0; i++) {
		if (strcmp(classes.list[i - 1].name, name) == 0)
			return (int)i;
	}
	return r < 0 && r != -ENOENT
		       ? r
		       : with_code(n, NATRA_CODE_NO_CLASS,
				   refuse(n, -ENOENT, "'%s' has no class '%s'",
					  gen->record.id, name));
}

int natra_class_stats(struct natra *n, const char *id, const char *name,
		      struct natra_stats *ret_stats)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_views struct views views = {0};
	struct natra_stats stats;
	int r;

	r = require_id(n, id);
	if (r == 0 && !name)
		r = refuse(n, -EINVAL, "name: missing");
	if (r == 0)
		r = attachment_find(n, id, &gen);
	if (r < 0)
		return r;
	do {
		r = find_class(n, &gen, name);
		if (r > 0)
			r = read_stats(n, &views, &gen.record, (uint32_t)r,
				       &stats);
	} while (r == -ENOENT && look_again(n, id, &gen, &views));
	return r < 0 ? r
		     : finish(n, struct_out(n, "ret_stats", ret_stats,
					    EXTENT_STATS, &stats));
}

/* A walk over the classes of an attachment. */
struct class_walk {
	natra_class_stats_fn fn;
	void *arg;
	bool has_called; /* then it cannot begin again, and an error may be fn's */
};

static int walk_classes(struct natra *n, struct views *views,
			const struct pin_gen *gen, struct class_walk *walk)
{
	const uint32_t slots = record_slots(&gen->record);
	struct record_classes classes;
	int r = slots > 1 ? pin_read_classes(n, gen, &classes) : 0;

	if (r == -ENOENT)
		return refuse(n, r, "the classes of '%s' are gone",
			      gen->record.id);
	for (uint32_t i = 1; r == 0 && i < slots; i++) {
		const struct record_class *of = &classes.list[i - 1];
		const struct natra_class class = {
			.sz = sizeof(class),
			.name = of->name,
			.ingress_rate_bits_per_sec =
				of->ingress_rate_bits_per_sec,
			.egress_rate_bits_per_sec =
				of->egress_rate_bits_per_sec,
		};
		struct natra_stats stats;

		r = read_stats(n, views, &gen->record, i, &stats);
		if (r < 0)
			break;
		forget_error(n);
		walk->has_called = true;
		r = walk->fn(walk->arg, &class, &stats);
	}
	return r;
}

int natra_foreach_class_stats(struct natra *n, const char *id,
			      natra_class_stats_fn fn, void *arg)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_views struct views views = {0};
	struct class_walk walk = {.fn = fn, .arg = arg};
	int r = require_id(n, id);

	if (r == 0 && !fn)
		r = refuse(n, -EINVAL, "fn: missing");
	if (r == 0)
		r = attachment_find(n, id, &gen);
	if (r < 0)
		return r;
	do {
		r = walk_classes(n, &views, &gen, &walk);
	} while (r == -ENOENT && !walk.has_called &&
		 look_again(n, id, &gen, &views));
	return finish_walk(n, r);
}

/* Fills in what passed the programs when somebody last looked. A leg of which nothing is on record
 * limited nothing then, or has been compared since a moment ago only. */
static int recall_bypass(struct natra *n, struct views *views,
			 const struct record *record, struct natra_info *info)
{
	struct bypass bypass = {0};
	int r = 0;

	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		struct carried_share share;
		struct natra_carried carried;

		if (!record->leg[i].hook)
			continue;
		r = views_read_carried(n, views, &record->slot[i], &carried);
		if (r < 0)
			break;
		share = carried_last(&carried);
		if (share.bytes)
			bypass_add(&bypass, (enum leg)i, &share);
	}
	info_set_bypass(info, &bypass);
	return r;
}

struct walk {
	struct natra *n;
	struct views views;
	natra_stats_fn fn;
	void *arg;
};

/* Returns whether something is still attached by an id. */
static bool is_there(struct natra *n, const char *path)
{
	KEEP_ERROR_SCOPE(n);
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;

	return pin_find_gen(n, path, &gen) != -ENOENT;
}

static int walk_id(void *arg, const char *path)
{
	struct walk *walk = arg;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_stats stats;
	struct natra_info info;
	bool has_stats, is_again = false;
	int r = pin_find_gen(walk->n, path, &gen);

	/* It is being attached or detached. */
	if (r == -ENOENT)
		return 0;
	has_stats = r == 0 && !gen.record.unshaped;
	/* Nobody but natra of its ABI can read its counters. */
	if (r == -ESTALE)
		r = 0;
	while (has_stats) {
		r = read_stats(walk->n, &walk->views, &gen.record, 0, &stats);
		if (r != -ENOENT)
			break;
		/* The first time its view may be of a bank that was there before. */
		if (!look_again(walk->n, gen.record.id, &gen, &walk->views) &&
		    is_again)
			break;
		is_again = true;
		has_stats = !gen.record.unshaped;
		r = 0;
	}
	if (r == -ENOMEM || r == -EPERM)
		return r;
	if (r < 0) {
		if (r == -ENOENT && !is_there(walk->n, path))
			return 0;
		log_line(walk->n, NATRA_LOG_WARN, "%s: %s", path,
			 last_error(walk->n));
		if (!has_stats)
			return 0;
		/* Its record could be read: its limits may be gone, too. */
		has_stats = false;
	}
	info_of(&gen, &info);
	if (has_stats)
		(void)recall_bypass(walk->n, &walk->views, &gen.record, &info);
	forget_error(walk->n);
	return walk->fn(walk->arg, &info, has_stats ? &stats : NULL);
}

int natra_foreach_stats(struct natra *n, natra_stats_fn fn, void *arg)
{
	struct walk walk = {.n = n, .fn = fn, .arg = arg};
	int r;

	if (!begin_call(n))
		return -EINVAL;
	if (!fn)
		return refuse(n, -EINVAL, "fn: missing");
	r = pin_dir_foreach_id(n, walk_id, &walk);
	views_close(&walk.views);
	return finish_walk(n, r);
}

static int more_bytes_first(const void *a, const void *b)
{
	const struct natra_flow_entry *x = a;
	const struct natra_flow_entry *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

struct natra_flow flow_of_tuple(const struct natra_tuple *tuple)
{
	struct natra_flow flow = {
		.ip_version = tuple->version,
		.protocol = tuple->protocol,
	};
	uint16_t ports[2];

	memcpy(flow.saddr, tuple->saddr, sizeof(flow.saddr));
	memcpy(flow.daddr, tuple->daddr, sizeof(flow.daddr));
	memcpy(ports, &tuple->ports, sizeof(ports));
	flow.sport = ntohs(ports[0]);
	flow.dport = ntohs(ports[1]);
	return flow;
}

static struct natra_flow flow_of(const struct natra_flow_entry *entry,
				 uint32_t now)
{
	struct natra_flow flow = flow_of_tuple(&entry->tuple);

	flow.bytes = entry->bytes;
	flow.packets = entry->packets;
	flow.idle_ns = (uint64_t)(uint32_t)(now - entry->last)
		       << NATRA_FLOW_TICK_SHIFT;
	return flow;
}

/* The entries of the tables of flows that an attachment has in one direction. */
struct flow_tables {
	struct natra_flow_entry list[2 * (1 + NATRA_CLASSES_MAX) * NATRA_FLOWS];
	size_t len;
};
_Static_assert(sizeof(((struct flow_tables *)0)->list) ==
		       NATRA_FLOWS_MAX * sizeof(struct natra_flow_entry),
	       "callers have room for all of them");

/* Adds those of a leg, if there is one. */
static int add_tables(struct natra *n, const struct record *record,
		      enum leg leg, struct flow_tables *tables)
{
	cleanup_slot struct slot slot = SLOT_INIT;
	int r;

	if (!record->leg[leg].hook)
		return 0;
	r = engine_open_slot(n, &record->slot[leg], &slot);
	if (r == -ENOENT)
		return refuse(n, r, "the flows of '%s' are gone", record->id);
	for (uint32_t i = 0; i < record_slots(record) && r == 0; i++) {
		const struct slot of = slot_of_class(&slot, i);

		r = slot_flows(n, &of, &tables->list[tables->len]);
		tables->len += NATRA_FLOWS;
	}
	return r;
}

static int read_tables(struct natra *n, const struct record *record,
		       enum natra_direction direction,
		       struct flow_tables *tables)
{
	int r = 0;

	tables->len = 0;
	for (int leg = 0; leg < LEG_MAX && r == 0; leg++) {
		if ((leg == LEG_EGRESS) ==
		    (direction == NATRA_DIRECTION_EGRESS))
			r = add_tables(n, record, (enum leg)leg, tables);
	}
	return r;
}

/* Returns whether a flow is among those before it, which are larger: the host side and
 * the backstop have seen it. */
static bool is_repeated(const struct flow_tables *tables, size_t at)
{
	for (size_t i = 0; i < at; i++) {
		if (tables->list[i].tag == tables->list[at].tag &&
		    memcmp(&tables->list[i].tuple, &tables->list[at].tuple,
			   sizeof(struct natra_tuple)) == 0)
			return true;
	}
	return false;
}

int natra_top(struct natra *n, const char *id, enum natra_direction direction,
	      struct natra_flow *ret_flows, size_t *inout_len)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_free struct flow_tables *tables = NULL;
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
	tables = calloc(1, sizeof(*tables));
	if (!tables)
		return fail_errno(n, -ENOMEM, "read the flows");
	do {
		r = read_tables(n, &gen.record, direction, tables);
	} while (r == -ENOENT && attachment_find_newer(n, id, &gen));
	if (r < 0)
		return r;

	now = slot_flow_now();
	qsort(tables->list, tables->len, sizeof(tables->list[0]),
	      more_bytes_first);
	for (size_t i = 0; i < tables->len && len < *inout_len; i++) {
		if (tables->list[i].tag && !is_repeated(tables, i))
			ret_flows[len++] = flow_of(&tables->list[i], now);
	}
	*inout_len = len;
	return finish(n, 0);
}
