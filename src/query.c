/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that only read, and gc. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "engine.h"
#include "place.h"
#include "structs.h"
#include "teardown.h"
#include "util/cleanup.h"
#include "util/str.h"
#include "../bpf/natra_flows.h"

void info_of(const struct pin_gen *gen, struct natra_info *info)
{
	const struct meta *m = &gen->meta;

	*info = (struct natra_info){.sz = sizeof(*info)};
	(void)str_copy(info->id, sizeof(info->id), m->id);
	(void)str_copy(info->ifname, sizeof(info->ifname), m->pod.ifname);
	(void)str_copy(info->network, sizeof(info->network), m->network);
	(void)str_copy(info->label, sizeof(info->label), m->label);
	(void)str_copy(info->reason, sizeof(info->reason), m->reason);
	(void)str_copy(info->pin_path, sizeof(info->pin_path),
		       place_public(gen->path));
	info->policy = meta_get_policy(m);
	info->effective = policy_effective(&info->policy);
	info->mode = (enum natra_mode)m->mode;
	info->edt_active = m->edt != 0;
	info->pace_active = m->half[HALF_PACE].hook != META_HOOK_NONE;
	info->fq_is_ours = m->pod.fq != 0;
	info->host_fq_is_ours = m->host.fq != 0;
	info->unshaped = m->unshaped != 0;
	info->ifindex = m->pod.ifindex;
	(void)str_copy(info->host_ifname, sizeof(info->host_ifname),
		       m->host.ifname);
	info->host_ifindex = m->host.ifindex;
	info->netns_inode = m->pod.netns_inode;
	info->abi = gen->abi;
	info->ingress_prog_id = m->half[HALF_INGRESS].prog_id;
	info->egress_prog_id = m->half[HALF_EGRESS].prog_id;
	info->pace_prog_id = m->half[HALF_PACE].prog_id;
}

/* Sets *ret_current to whether all programs of an attachment are this build's.
 * A program that is gone is not. */
static int read_current(struct natra *n, const struct pin_gen *gen,
			bool *ret_current)
{
	bool all = !gen->meta.unshaped;

	for (int i = 0; i < HALF_MAX && all; i++) {
		int r = 0;

		if (gen->meta.half[i].hook)
			r = engine_is_current(n, &gen->meta.slot[i], &all);
		if (r == -ENOENT || r == -ESTALE)
			all = false;
		else if (r < 0)
			return r;
	}
	*ret_current = all;
	return 0;
}

static int find_attached(struct natra *n, const char *id,
			 struct pin_gen *ret_gen)
{
	int r = pin_find(n, id, ret_gen);

	if (r == -ENOENT)
		return natra_refuse(n, r, "'%s' is not attached", id);
	return r;
}

int natra_query(struct natra *n, const char *id, struct natra_info *ret_info)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_info info = {0};
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = find_attached(n, id, &gen);
	if (r < 0)
		return r;
	r = check_exists(n, &gen);
	if (r < 0)
		return r;
	info_of(&gen, &info);
	info.interface_gone = r == 0;
	r = read_current(n, &gen, &info.program_is_current);
	if (r < 0)
		return r;
	return natra_done(
		n, struct_out(n, "ret_info", ret_info, &info, sizeof(info)));
}

int natra_foreach_subnet(struct natra *n, const char *id, natra_subnet_fn fn,
			 void *arg)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	cleanup_subnets struct subnets subnets = {0};
	char text[SUBNET_TEXT_MAX];
	int r;

	r = require_id(n, id);
	if (r == 0 && !fn)
		r = natra_refuse(n, -EINVAL, "fn: missing");
	if (r == 0)
		r = find_attached(n, id, &gen);
	if (r < 0)
		return r;
	r = pin_read_subnets(n, &gen, &subnets);
	if (r == -ENOENT)
		return natra_refuse(n, r, "the subnets of '%s' are gone", id);
	for (size_t i = 0; i < subnets.len && r == 0; i++) {
		subnet_format(&subnets.list[i], text);
		r = fn(arg, text);
	}
	return natra_done(n, r);
}

static struct natra_count count_of(const struct natra_counters *c,
				   enum natra_counter which)
{
	return (struct natra_count){
		.packets = c->count[which].packets,
		.bytes = c->count[which].bytes,
	};
}

static int read_half(struct natra *n, const struct pin_gen *gen, enum half half,
		     struct natra_direction_stats *ret)
{
	struct natra_counters c;
	cleanup_slot struct slot slot = SLOT_INIT;
	int r;

	if (!gen->meta.half[half].hook)
		return 0;
	r = engine_open_slot(n, &gen->meta.slot[half], &slot);
	if (r == -ENOENT)
		return natra_refuse(n, r, "the counters of '%s' are gone",
				    gen->meta.id);
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
		r = find_attached(n, id, &gen);
	if (r < 0)
		return r;
	pace = gen.meta.half[HALF_PACE].hook != META_HOOK_NONE;
	r = read_half(n, &gen, HALF_EGRESS, &stats.egress);
	if (r == 0)
		r = read_half(n, &gen, HALF_INGRESS,
			      pace ? &stats.backstop : &stats.ingress);
	if (r == 0 && pace)
		r = read_half(n, &gen, HALF_PACE, &stats.ingress);
	if (r < 0)
		return r;
	return natra_done(n, struct_out(n, "ret_stats", ret_stats, &stats,
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
	enum half half = HALF_EGRESS;
	size_t len = 0;
	uint32_t now;
	int r;

	r = require_id(n, id);
	if (r == 0 && (!inout_len || (*inout_len && !ret_flows)))
		r = natra_refuse(n, -EINVAL, "ret_flows, inout_len: missing");
	if (r == 0 && (unsigned int)direction >= NATRA_DIRECTION_MAX)
		r = natra_refuse(n, -EINVAL, "direction: %u", direction);
	if (r == 0)
		r = find_attached(n, id, &gen);
	if (r < 0)
		return r;
	if (direction == NATRA_DIRECTION_INGRESS)
		half = gen.meta.half[HALF_PACE].hook ? HALF_PACE : HALF_INGRESS;
	if (!gen.meta.half[half].hook) {
		*inout_len = 0;
		return natra_done(n, 0);
	}
	r = engine_open_slot(n, &gen.meta.slot[half], &slot);
	if (r == -ENOENT)
		return natra_refuse(n, r, "the flows of '%s' are gone", id);
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
	return natra_done(n, 0);
}

/* An attachment, and where its interface has to be looked for. All of them are
 * read before anything is done with them. */
struct attachment {
	struct natra_info info;
	struct netns_seat seat;
};

struct attachments {
	struct natra *n;
	struct attachment *list;
	size_t len;
	bool skip_errors; /* leave out what cannot be read */
};

static int add_attachment(struct attachments *all,
			  const struct attachment *attachment)
{
	struct attachment *list =
		realloc(all->list, (all->len + 1) * sizeof(*list));

	if (!list)
		return natra_fail(all->n, -ENOMEM, "list attachments");
	all->list = list;
	all->list[all->len++] = *attachment;
	return 0;
}

static int add_stale(struct attachments *all, const char *path, uint32_t abi)
{
	struct attachment a = {.info.sz = sizeof(a.info), .seat.exists = 1};

	natra_log(all->n, NATRA_LOG_WARN, "%s", natra_error(all->n));
	(void)str_copy(a.info.pin_path, sizeof(a.info.pin_path),
		       place_public(path));
	a.info.abi = abi;
	return add_attachment(all, &a);
}

static int add_key(void *arg, const char *path)
{
	struct attachments *all = arg;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct attachment a;
	int r = pin_find_gen(all->n, path, &gen);

	if (r == -ENOENT)
		return 0;
	if (r == -ESTALE && !all->skip_errors)
		return add_stale(all, path, gen.abi);
	if (r == 0) {
		info_of(&gen, &a.info);
		r = read_current(all->n, &gen, &a.info.program_is_current);
	}
	if (r == 0) {
		a.seat = check_seat(&gen);
		a.seat.exists = check_has_link(all->n, &gen);
		return add_attachment(all, &a);
	}
	return all->skip_errors ? 0 : r;
}

/* Finds out which interfaces exist that no TCX link tells of, with one look at
 * all namespaces. */
static int look_at_seats(struct attachments *all, struct netns_index *index)
{
	cleanup_free struct netns_seat **seats =
		calloc(all->len, sizeof(struct netns_seat *));
	size_t len = 0;
	int r;

	if (!seats)
		return natra_fail(all->n, -ENOMEM, "list attachments");
	for (size_t i = 0; i < all->len; i++) {
		if (all->list[i].seat.exists == 0)
			seats[len++] = &all->list[i].seat;
	}
	if (!len)
		return 0;
	r = index ? netns_index_look(index, seats, len) : -ENOENT;
	return r < 0 ? natra_fail(all->n, r, "look for interfaces") : 0;
}

static int compare_ids(const void *a, const void *b)
{
	return strcmp(((const struct attachment *)a)->info.id,
		      ((const struct attachment *)b)->info.id);
}

/* Reads all attachments and sorts them by their ids. The index is made after
 * they were read, so that a namespace which is not in it is gone. */
static int read_attachments(struct attachments *all,
			    struct netns_index **ret_index)
{
	int r = pin_foreach_key(all->n, add_key, all);

	if (r < 0)
		return r;
	if (!all->len)
		return 0;
	qsort(all->list, all->len, sizeof(all->list[0]), compare_ids);
	r = netns_index_make(ret_index);
	/* Without /proc there is no index, but it may not be needed. */
	if (r < 0 && r != -ENOENT)
		return natra_fail(all->n, r, "look for network namespaces");
	return look_at_seats(all, *ret_index);
}

static int tell_of(struct natra *n, struct attachment *a,
		   natra_attachment_fn fn, void *arg)
{
	if (a->seat.exists < 0)
		return natra_fail(n, a->seat.exists,
				  "look for interface '%s' of '%s'",
				  a->info.ifname, a->info.id);
	a->info.interface_gone = a->seat.exists == 0;
	return fn(arg, &a->info);
}

int natra_foreach_attachment(struct natra *n, natra_attachment_fn fn, void *arg)
{
	cleanup_netns_index struct netns_index *index = NULL;
	struct attachments all = {.n = n};
	int r;

	if (!n)
		return -EINVAL;
	if (!fn)
		return natra_refuse(n, -EINVAL, "fn: missing");
	r = read_attachments(&all, &index);
	for (size_t i = 0; i < all.len && r == 0; i++)
		r = tell_of(n, &all.list[i], fn, arg);
	free(all.list);
	return natra_done(n, r);
}

struct owner {
	struct natra *n;
	const struct netns_id *netns;
	uint32_t ifindex;
	char *ret_id;
	bool found;
};

static int match_owner(void *arg, const char *path)
{
	struct owner *owner = arg;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r = pin_find_gen(owner->n, path, &gen);

	if (r == -ENOENT || r == -ESTALE)
		return 0;
	if (r < 0)
		return r;
	if (gen.meta.pod.ifindex != owner->ifindex ||
	    gen.meta.pod.netns_cookie != owner->netns->cookie)
		return 0;
	(void)str_copy(owner->ret_id, NATRA_ID_MAX + 1, gen.meta.id);
	owner->found = true;
	/* Another id may have limits where this one has only a record. */
	return !gen.meta.unshaped;
}

int find_owner(struct natra *n, const struct netns_id *netns, uint32_t ifindex,
	       char *ret_id)
{
	struct owner owner = {n, netns, ifindex, ret_id, false};
	int r = pin_foreach_key(n, match_owner, &owner);

	if (r < 0)
		return r;
	return owner.found ? 0 : -ENOENT;
}

struct sweep {
	struct natra *n;
	const char *network;
	const char *const *keep;
	size_t keep_len;
	size_t removed;
	int first_error;
	char error[HANDLE_ERROR_MAX];
};

static bool is_kept(const struct sweep *sweep, const char *id)
{
	for (size_t i = 0; i < sweep->keep_len; i++) {
		if (strcmp(sweep->keep[i], id) == 0)
			return true;
	}
	return false;
}

/* 1: nobody needs it; 0: somebody may. */
static int is_garbage(const struct sweep *sweep, const struct pin_gen *gen)
{
	int exists = check_exists(sweep->n, gen);

	if (exists <= 0)
		return exists < 0 ? exists : 1;
	return sweep->network &&
	       strcmp(sweep->network, gen->meta.network) == 0 &&
	       !is_kept(sweep, gen->meta.id);
}

/* Under the lock: what is not complete is nobody's work in progress. */
static int sweep_locked(struct sweep *sweep, const struct pin_key *key)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r = pin_find_gen(sweep->n, key->path, &gen);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0) {
		r = is_garbage(sweep, &gen);
		if (r < 0)
			return r;
		if (r == 0)
			return teardown_key(sweep->n, key, &gen, -1);
		sweep->removed++;
	}
	r = teardown_key(sweep->n, key, NULL, -1);
	if (r == 0)
		pin_remove_key(key);
	return r;
}

static int sweep_key(void *arg, const char *path)
{
	struct sweep *sweep = arg;
	cleanup_pin_key struct pin_key key = PIN_KEY_INIT;
	int r = pin_lock_path(sweep->n, path, &key);

	if (r == 0)
		r = sweep_locked(sweep, &key);
	if (r < 0 && r != -ENOENT && sweep->first_error == 0) {
		sweep->first_error = r;
		(void)str_copy(sweep->error, sizeof(sweep->error),
			       natra_error(sweep->n));
	}
	return 0;
}

static int sweep_all(struct sweep *sweep)
{
	struct natra *n = sweep->n;
	int r = pin_foreach_key(n, sweep_key, sweep);

	if (r == 0 && sweep->first_error) {
		r = sweep->first_error;
		(void)str_copy(n->error, sizeof(n->error), sweep->error);
	}
	if (r == 0)
		r = engine_gc(n);
	return r < 0 ? r : pin_gc_netns(n);
}

int natra_gc(struct natra *n, const char *network, const char *const *keep,
	     size_t keep_len, size_t *ret_removed)
{
	cleanup_netns_index struct netns_index *index = NULL;
	struct attachments all = {.n = n, .skip_errors = true};
	struct sweep sweep = {
		.n = n,
		.network = network,
		.keep = keep,
		.keep_len = keep_len,
	};
	int r;

	if (!n)
		return -EINVAL;
	if (keep_len && !keep)
		return natra_refuse(n, -EINVAL, "keep: missing");
	if (keep_len && !network)
		return natra_refuse(n, -EINVAL,
				    "keep: %zu ids without a network",
				    keep_len);
	r = read_attachments(&all, &index);
	if (r == 0) {
		n->netns_index = index;
		r = sweep_all(&sweep);
		n->netns_index = NULL;
	}
	free(all.list);
	if (r == 0 && ret_removed)
		*ret_removed = sweep.removed;
	return natra_done(n, r);
}
