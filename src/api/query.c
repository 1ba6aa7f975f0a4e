/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that only read, and gc. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/internal.h"
#include "api/structs.h"
#include "attach/attachment.h"
#include "attach/check.h"
#include "attach/teardown.h"
#include "kernel/netns_find.h"
#include "state/engine.h"
#include "state/place.h"
#include "util/cleanup.h"
#include "util/str.h"
#include "../../bpf/natra_flows.h"

int require_id(struct natra *n, const char *id)
{
	if (!n)
		return -EINVAL;
	if (!id || !id[0])
		return refuse(n, -EINVAL, "id: missing");
	return 0;
}

void info_of(const struct pin_gen *gen, struct natra_info *info)
{
	const struct record *m = &gen->record;

	*info = (struct natra_info){.sz = sizeof(*info)};
	(void)str_copy(info->id, sizeof(info->id), m->id);
	(void)str_copy(info->ifname, sizeof(info->ifname), m->pod.ifname);
	(void)str_copy(info->network, sizeof(info->network), m->network);
	(void)str_copy(info->label, sizeof(info->label), m->label);
	(void)str_copy(info->reason, sizeof(info->reason), m->reason);
	(void)str_copy(info->pin_path, sizeof(info->pin_path),
		       place_public(gen->path));
	info->policy = record_get_policy(m);
	info->effective = policy_effective(&info->policy);
	info->mode = (enum natra_mode)m->mode;
	info->edt_active = m->edt != 0;
	info->pace_active = m->leg[LEG_PACE].hook != RECORD_HOOK_NONE;
	info->fq_is_ours = m->pod.fq != 0;
	info->host_fq_is_ours = m->host.fq != 0;
	info->unshaped = m->unshaped != 0;
	info->ifindex = m->pod.ifindex;
	(void)str_copy(info->host_ifname, sizeof(info->host_ifname),
		       m->host.ifname);
	info->host_ifindex = m->host.ifindex;
	info->netns_inode = m->pod.netns_inode;
	info->abi = gen->abi;
	info->ingress_prog_id = m->leg[LEG_INGRESS].prog_id;
	info->egress_prog_id = m->leg[LEG_EGRESS].prog_id;
	info->pace_prog_id = m->leg[LEG_PACE].prog_id;
}

/* Sets *ret_current to whether all programs of an attachment are this build's.
 * A program that is gone is not. */
static int read_current(struct natra *n, const struct pin_gen *gen,
			bool *ret_current)
{
	bool all = !gen->record.unshaped;

	for (int i = 0; i < LEG_MAX && all; i++) {
		int r = 0;

		if (gen->record.leg[i].hook)
			r = engine_is_current(n, &gen->record.slot[i], &all);
		if (r == -ENOENT || r == -ESTALE)
			all = false;
		else if (r < 0)
			return r;
	}
	*ret_current = all;
	return 0;
}

int natra_query(struct natra *n, const char *id, struct natra_info *ret_info)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	struct natra_info info = {0};
	int r;

	r = require_id(n, id);
	if (r == 0)
		r = attachment_find(n, id, &gen);
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
	return finish(n,
		      struct_out(n, "ret_info", ret_info, &info, sizeof(info)));
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
		r = refuse(n, -EINVAL, "fn: missing");
	if (r == 0)
		r = attachment_find(n, id, &gen);
	if (r < 0)
		return r;
	r = attachment_read_subnets(n, &gen, &subnets);
	for (size_t i = 0; i < subnets.len && r == 0; i++) {
		subnet_format(&subnets.list[i], text);
		r = fn(arg, text);
	}
	return finish(n, r);
}

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
		return fail_errno(all->n, -ENOMEM, "list attachments");
	all->list = list;
	all->list[all->len++] = *attachment;
	return 0;
}

static int add_stale(struct attachments *all, const char *path, uint32_t abi)
{
	struct attachment a = {.info.sz = sizeof(a.info), .seat.exists = 1};

	log_line(all->n, NATRA_LOG_WARN, "%s", last_error(all->n));
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
		const struct record_link *link = check_sought_link(&gen);

		a.seat.netns = record_netns(link);
		a.seat.ifindex = link->ifindex;
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
		return fail_errno(all->n, -ENOMEM, "list attachments");
	for (size_t i = 0; i < all->len; i++) {
		if (all->list[i].seat.exists == 0)
			seats[len++] = &all->list[i].seat;
	}
	if (!len)
		return 0;
	r = index ? netns_index_look(index, seats, len) : -ENOENT;
	return r < 0 ? fail_errno(all->n, r, "look for interfaces") : 0;
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
	int r = pin_dir_foreach_id(all->n, add_key, all);

	if (r < 0)
		return r;
	if (!all->len)
		return 0;
	qsort(all->list, all->len, sizeof(all->list[0]), compare_ids);
	r = netns_index_make(ret_index);
	/* Without /proc there is no index, but it may not be needed. */
	if (r < 0 && r != -ENOENT)
		return fail_errno(all->n, r, "look for network namespaces");
	return look_at_seats(all, *ret_index);
}

static int tell_of(struct natra *n, struct attachment *a,
		   natra_attachment_fn fn, void *arg)
{
	if (a->seat.exists < 0)
		return fail_errno(n, a->seat.exists,
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
		return refuse(n, -EINVAL, "fn: missing");
	r = read_attachments(&all, &index);
	for (size_t i = 0; i < all.len && r == 0; i++)
		r = tell_of(n, &all.list[i], fn, arg);
	free(all.list);
	return finish(n, r);
}

struct sweep {
	struct natra *n;
	const char *network;
	const char *const *keep;
	size_t keep_len;
	size_t removed;
	int first_error;
	struct kept_error first_text;
};

static bool is_kept(const struct sweep *sweep, const char *id)
{
	for (size_t i = 0; i < sweep->keep_len; i++) {
		if (strcmp(sweep->keep[i], id) == 0)
			return true;
	}
	return false;
}

/* Returns 1 if nobody needs the attachment any more, 0 if somebody may. */
static int is_garbage(const struct sweep *sweep, const struct pin_gen *gen)
{
	int exists = check_exists(sweep->n, gen);

	if (exists <= 0)
		return exists < 0 ? exists : 1;
	return sweep->network &&
	       strcmp(sweep->network, gen->record.network) == 0 &&
	       !is_kept(sweep, gen->record.id);
}

/* Sweeps the directory of an id, which is locked: what is not complete there is
 * not the work of a living process. */
static int sweep_locked(struct sweep *sweep, const struct pin_dir *dir)
{
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	int r = pin_find_gen(sweep->n, dir->path, &gen);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0) {
		r = is_garbage(sweep, &gen);
		if (r < 0)
			return r;
		if (r == 0)
			return teardown_all(sweep->n, dir, &gen, -1);
		sweep->removed++;
	}
	r = teardown_all(sweep->n, dir, NULL, -1);
	if (r == 0)
		pin_dir_remove(dir);
	return r;
}

static int sweep_key(void *arg, const char *path)
{
	struct sweep *sweep = arg;
	cleanup_pin_dir struct pin_dir dir = PIN_DIR_INIT;
	int r = pin_dir_lock(sweep->n, path, &dir);

	if (r == 0)
		r = sweep_locked(sweep, &dir);
	if (r < 0 && r != -ENOENT && sweep->first_error == 0) {
		sweep->first_error = r;
		sweep->first_text = keep_error(sweep->n);
	}
	return 0;
}

static int sweep_all(struct sweep *sweep)
{
	struct natra *n = sweep->n;
	int r = pin_dir_foreach_id(n, sweep_key, sweep);

	if (r == 0 && sweep->first_error) {
		r = sweep->first_error;
		restore_error(&sweep->first_text);
	}
	if (r == 0)
		r = engine_gc(n);
	return r < 0 ? r : pin_dir_gc_netns(n);
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
		return refuse(n, -EINVAL, "keep: missing");
	if (keep_len && !network)
		return refuse(n, -EINVAL, "keep: %zu ids without a network",
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
	return finish(n, r);
}
