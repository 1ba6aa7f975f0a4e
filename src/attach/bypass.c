/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/bypass.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "attach/attachment.h"
#include "attach/check.h"
#include "kernel/link.h"
#include "kernel/qdisc.h"
#include "state/engine.h"
#include "state/group_map.h"
#include "util/cleanup.h"
#include "util/clock.h"

/* Who looks again within this time of a window's end gets what came out last. */
#define LOOK_AGAIN_NS   1000000000ULL
/* A packet that has been received waits this long at most for its CPU to judge it. */
#define RECEIVE_WAIT_NS 20000000L

/* A leg's slots, and what they and the interface have counted. */
struct leg_look {
	bool is_used;
	struct slot slot;
	struct slot_states states;
	struct carried_look counts;
};

struct look {
	struct natra *n;
	const struct record *record;
	struct leg_look legs[LEG_MAX];
	struct link_info link;
};

static void close_look(struct look *look)
{
	for (int i = 0; i < LEG_MAX; i++) {
		slot_unmap(&look->legs[i].states);
		slot_close(&look->legs[i].slot);
	}
}
#define cleanup_look __attribute__((cleanup(close_look)))

static enum natra_direction direction_of(enum leg leg)
{
	return leg == LEG_EGRESS ? NATRA_DIRECTION_EGRESS
				 : NATRA_DIRECTION_INGRESS;
}

enum natra_direction
bypass_direction(const struct record *record, enum leg leg,
		 const bool group_limits[NATRA_DIRECTION_MAX])
{
	const struct natra_limits *limits = &record->limits[leg];
	const enum natra_direction to = direction_of(leg);
	/* A member without a rate of its own runs on one that nothing reaches. */
	const bool is_limited =
		limits->by_group ? group_limits[to] : limits->rate.mult != 0;

	if (!record->leg[leg].hook || record->unshaped ||
	    !(is_limited || record->classes_len))
		return NATRA_DIRECTION_MAX;
	/* The pacer charges the group, and the backstop behind it does not, see
	 * policy_backstop. */
	if (leg == LEG_INGRESS && record->leg[LEG_HOST].hook &&
	    record->limits[LEG_HOST].member.group && group_limits[to])
		return NATRA_DIRECTION_MAX;
	return to;
}

void bypass_add(struct bypass *bypass, enum leg leg,
		const struct carried_share *of_leg)
{
	const enum natra_direction to = direction_of(leg);
	struct carried_share *share = &bypass->share[to];

	if (!bypass->has[to] ||
	    (double)of_leg->missed_bytes * (double)share->bytes <
		    (double)share->missed_bytes * (double)of_leg->bytes)
		*share = *of_leg;
	bypass->has[to] = true;
}

static int open_leg(struct look *look, enum leg leg)
{
	const struct record *record = look->record;
	struct leg_look *of = &look->legs[leg];
	int r = engine_open_slot(look->n, &record->slot[leg], &of->slot);

	return r < 0 ? r
		     : slot_map(look->n, &of->slot, record_slots(record),
				&of->states);
}

/* Gets the place of what is on record of a leg, to write there at once. The caller need not hold a
 * lock, and another attachment may have the slot by now: then returns -ENOENT, as for one that has
 * gone. */
static int find_carried(const struct look *look, enum leg leg,
			struct natra_carried **ret_carried)
{
	const struct leg_look *of = &look->legs[leg];
	struct natra_config config;
	int r = slot_read_config(look->n, &of->slot, &config);

	if (r < 0)
		return r;
	if (config.owner != look->record->slot[leg].owner)
		return -ENOENT;
	*ret_carried = &of->states.list->carried;
	return 0;
}

static int clear_carried(const struct look *look, enum leg leg)
{
	struct natra_carried *carried;
	int r = find_carried(look, leg, &carried);

	if (r == 0)
		*carried = (struct natra_carried){0};
	return r;
}

static uint64_t count_bytes(const struct natra_state *state,
			    enum natra_counter counter)
{
	uint64_t bytes = 0;

	for (int i = 0; i < NATRA_STRIPES; i++)
		bytes +=
			__atomic_load_n(&state->stripes[i].count[counter].bytes,
					__ATOMIC_RELAXED);
	return bytes;
}

/* Sums what a leg's programs have judged, in all classes. An interface counts what it receives
 * before its hook, and what it sends behind it, where nothing is that was dropped. */
static uint64_t sum_judged(const struct record *record, enum leg leg,
			   const struct leg_look *of)
{
	const bool sends = !record->leg[leg].hook_ingress;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < record_slots(record); i++) {
		for (int j = 0; j < NATRA_COUNT_MAX; j++) {
			if (sends && (j == NATRA_COUNT_DROPPED_RATE ||
				      j == NATRA_COUNT_DROPPED_HORIZON))
				continue;
			bytes += count_bytes(&of->states.list[i],
					     (enum natra_counter)j);
		}
	}
	return bytes;
}

/* Reads what waits behind the hooks of one side. A qdisc that cannot be read is none. */
static void read_waiting(struct look *look, struct netlink *nl, bool on_host)
{
	const struct record *record = look->record;
	const struct record_link *link = on_host ? &record->host : &record->pod;

	for (int i = 0; i < LEG_MAX; i++) {
		const struct record_leg *leg = &record->leg[i];
		struct qdisc qdisc;

		if (!look->legs[i].is_used || (leg->on_host != 0) != on_host ||
		    leg->hook_ingress ||
		    qdisc_get(look->n, nl, link->ifindex, TC_H_ROOT, &qdisc) <
			    0)
			continue;
		look->legs[i].counts.waiting_bytes = qdisc.backlog_bytes;
	}
}

/* Runs in the pod's namespace. */
static int read_pod(void *arg)
{
	struct look *look = arg;
	const struct record_link *pod = &look->record->pod;
	cleanup_netlink struct netlink nl = {0};
	int r = netlink_open(look->n, &nl);

	if (r < 0)
		return r;
	read_waiting(look, &nl, false);
	return link_on_record(look->n, &nl, pod->ifindex, pod->ifname,
			      &look->link);
}

static int read_host(struct look *look)
{
	cleanup_netlink struct netlink nl = {0};
	int r;

	if (!look->record->host.ifindex)
		return 0;
	r = netlink_open(look->n, &nl);
	if (r == 0)
		read_waiting(look, &nl, true);
	return r;
}

static void end_look(struct look *look, enum leg leg)
{
	struct leg_look *leg_look = &look->legs[leg];
	struct carried_look *of = &leg_look->counts;
	const bool egress = leg == LEG_EGRESS;

	of->time_ns = clock_ns(CLOCK_BOOTTIME);
	of->bytes = egress ? look->link.tx_bytes : look->link.rx_bytes;
	of->packets = egress ? look->link.tx_packets : look->link.rx_packets;
	of->judged_after = sum_judged(look->record, leg, leg_look);
}

static int take_look(struct natra *n, const struct pin_gen *gen, int hint_fd,
		     struct look *look)
{
	int r;

	for (int i = 0; i < LEG_MAX; i++) {
		struct leg_look *leg = &look->legs[i];

		if (leg->is_used)
			leg->counts.judged_before =
				sum_judged(look->record, (enum leg)i, leg);
	}
	r = read_host(look);
	if (r == 0)
		r = attachment_visit(n, &gen->record.pod, hint_fd, read_pod,
				     look);
	if (r < 0)
		return r;
	for (int i = 0; i < LEG_MAX; i++) {
		if (look->legs[i].is_used)
			end_look(look, (enum leg)i);
	}
	return 0;
}

/* A group that cannot be read may limit, and the pod's own rates are compared all the same. */
static void read_group(struct natra *n, const struct record *record,
		       bool ret_limits[NATRA_DIRECTION_MAX])
{
	KEEP_ERROR_SCOPE(n);

	if (!record->group_number ||
	    groups_limit(n, record->group_number, ret_limits) == 0)
		return;
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++)
		ret_limits[i] = true;
}

/* Opens the legs. Of one that limits nothing now, as its group may have had a rate, nothing stays
 * on record. */
static int open_look(struct natra *n, const struct pin_gen *gen,
		     struct look *look)
{
	const struct record *record = &gen->record;
	bool group_limits[NATRA_DIRECTION_MAX] = {false};
	int r = 0;

	*look = (struct look){.n = n, .record = record};
	for (int i = 0; i < LEG_MAX; i++)
		look->legs[i].slot = (struct slot)SLOT_INIT;
	read_group(n, record, group_limits);
	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		struct leg_look *leg = &look->legs[i];

		if (!record->leg[i].hook)
			continue;
		r = open_leg(look, (enum leg)i);
		leg->is_used = r == 0 && bypass_direction(record, (enum leg)i,
							  group_limits) !=
						 NATRA_DIRECTION_MAX;
		if (r == 0 && !leg->is_used)
			r = clear_carried(look, (enum leg)i);
	}
	return r;
}

static bool is_new(const struct look *look)
{
	const uint64_t now_ns = clock_ns(CLOCK_BOOTTIME);
	bool is_new = true;

	for (int i = 0; i < LEG_MAX; i++) {
		const struct leg_look *leg = &look->legs[i];

		if (leg->is_used)
			is_new = is_new &&
				 now_ns - leg->states.list->carried.time_ns <
					 LOOK_AGAIN_NS;
	}
	return is_new;
}

/* Compares a leg's counts with what is on record, where the outcome is kept. */
static int compare_kept(const struct look *look, enum leg leg,
			const struct carried_look *counts,
			struct carried_share *ret_share)
{
	struct natra_carried *carried;
	int r = find_carried(look, leg, &carried);

	if (r == 0)
		*ret_share = carried_compare(carried, counts);
	return r;
}

void bypass_begin(struct natra *n, const struct pin_gen *gen, int hint_fd)
{
	cleanup_look struct look look;
	struct carried_share share;
	KEEP_ERROR_SCOPE(n);
	int r = open_look(n, gen, &look);

	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		if (look.legs[i].is_used)
			r = clear_carried(&look, (enum leg)i);
	}
	if (r == 0)
		r = take_look(n, gen, hint_fd, &look);
	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		if (look.legs[i].is_used)
			r = compare_kept(&look, (enum leg)i,
					 &look.legs[i].counts, &share);
	}
}

/* Finds out what passed a leg, after those have been judged that it had just received. */
static int compare(const struct look *look, enum leg leg,
		   struct carried_share *ret_share)
{
	const struct timespec wait = {.tv_nsec = RECEIVE_WAIT_NS};
	const struct leg_look *of = &look->legs[leg];
	struct carried_look counts = of->counts;
	struct natra_carried record = of->states.list->carried;
	struct carried_share share = carried_compare(&record, &counts);

	if (look->record->leg[leg].hook_ingress && carried_percent(&share)) {
		(void)nanosleep(&wait, NULL);
		counts.judged_after = sum_judged(look->record, leg, of);
	}
	return compare_kept(look, leg, &counts, ret_share);
}

int bypass_look(struct natra *n, const struct pin_gen *gen, int hint_fd,
		struct bypass *ret_bypass)
{
	cleanup_look struct look look;
	struct bypass bypass = {0};
	bool is_known;
	int r = open_look(n, gen, &look);

	if (r < 0)
		return r;
	is_known = is_new(&look);
	r = is_known ? 0 : take_look(n, gen, hint_fd, &look);
	for (int i = 0; i < LEG_MAX && r == 0; i++) {
		struct carried_share share;

		if (!look.legs[i].is_used)
			continue;
		if (is_known)
			share = carried_last(
				&look.legs[i].states.list->carried);
		else
			r = compare(&look, (enum leg)i, &share);
		if (r == 0)
			bypass_add(&bypass, (enum leg)i, &share);
	}
	if (r == 0)
		*ret_bypass = bypass;
	return r;
}

struct front {
	enum natra_direction direction;
	char text[96];
};

/* Notes a program that may be what ends the hook before natra's. */
static int note_front(void *arg, const struct natra_neighbour *e)
{
	struct front *front = arg;

	if (!e->is_before_ours || e->direction != front->direction)
		return 0;
	(void)snprintf(front->text, sizeof(front->text),
		       "; %s %u '%s' on %s of '%s' runs before it",
		       e->prog_id ? "program" : "filter", e->prog_id,
		       e->prog_name, e->hook, e->ifname);
	return 1;
}

static int refuse_bypassed(struct natra *n, const struct pin_gen *gen,
			   enum natra_direction direction,
			   const struct carried_share *share)
{
	const char *name =
		direction == NATRA_DIRECTION_INGRESS ? "ingress" : "egress";
	struct front front = {.direction = direction};

	(void)check_neighbours(n, gen, note_front, &front);
	return with_name(
		n, NATRA_CODE_BYPASSED, name,
		refuse(n, -EBADE,
		       "%s of '%s' is bypassed: %u %% of the bytes (%.0f of %.0f MB) were not seen by natra's program%s",
		       name, gen->record.pod.ifname, carried_percent(share),
		       (double)share->missed_bytes / 1e6,
		       (double)share->bytes / 1e6, front.text));
}

int bypass_check(struct natra *n, const struct pin_gen *gen)
{
	struct bypass bypass;
	int r;

	{
		KEEP_ERROR_SCOPE(n);
		r = bypass_look(n, gen, -1, &bypass);
	}
	/* What cannot be counted, as in a namespace that this process cannot enter, is no
	 * difference. */
	if (r < 0)
		return 0;
	for (int i = 0; i < NATRA_DIRECTION_MAX; i++) {
		if (carried_percent(&bypass.share[i]))
			return refuse_bypassed(n, gen, (enum natra_direction)i,
					       &bypass.share[i]);
	}
	return 0;
}
