/* SPDX-License-Identifier: BSD-2-Clause */
#include "hooks_job.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/policy/mode.h"
#include "../common/memory.h"
#include "turns.h"

/* A look goes on beside other jobs; those that set limits wait while places are given back. */
#define LOOK_MAX_MS    60000
#define RESTORE_MAX_MS 10000

struct found {
	char id[NATRA_ID_MAX + 1];
	char ifname[16];
	uint32_t ifindex;
	uint32_t programs[3]; /* those that belong on the interface; 0: none */
	bool is_overtaken;
	bool by_links; /* nothing gets a filter in front of a link */
	const struct hook_entry *entry; /* NULL: it has none yet */
	bool is_wanted;
};

struct hooks {
	struct natra *n;
	struct log *log;
	struct found *list;
	size_t len, begin; /* the walk goes around, from the place `begin` on */
	const struct hooks_order *order;
	struct hooks_report *report; /* the walk's processes share it */
	struct turns turns;
};

struct hook_entry *hook_find(struct hook_entry *list, size_t len,
			     uint32_t ifindex)
{
	for (size_t i = 0; i < len; i++) {
		if (list[i].ifindex == ifindex)
			return &list[i];
	}
	return NULL;
}

static bool is_wanted(const struct hook_entry *entry, enum hooks_task task)
{
	switch (task) {
	case HOOKS_LOOK:
		return !entry || entry->is_asked;
	case HOOKS_LOOK_AT_ALL:
		return true;
	case HOOKS_RESTORE:
		break;
	}
	return entry && entry->is_missing;
}

static int add(void *arg, const struct natra_info *info,
	       const struct natra_stats *stats)
{
	struct hooks *hooks = arg;
	struct found *found;

	if (!stats || !info->host_ifindex || hooks->len == HOOKS_MAX)
		return 0;
	hooks->list = memory_grow(hooks->list,
				  (hooks->len + 1) * sizeof(*hooks->list));
	found = &hooks->list[hooks->len++];
	*found = (struct found){0};
	memcpy(found->id, info->id, sizeof(found->id));
	memcpy(found->ifname, info->host_ifname, sizeof(found->ifname));
	found->ifindex = info->host_ifindex;
	if (mode_is_hostside(info->mode)) {
		found->programs[0] = info->ingress_prog_id;
		found->programs[1] = info->egress_prog_id;
	}
	found->by_links = info->mode == NATRA_ATTACH_MODE_TCX_PODSIDE ||
			  info->mode == NATRA_ATTACH_MODE_TCX_HOSTSIDE;
	found->programs[2] = info->host_prog_id;
	found->entry = hook_find(hooks->order->list, hooks->order->len,
				 found->ifindex);
	found->is_wanted = is_wanted(found->entry, hooks->order->task);
	return 0;
}

/* Crosses out a program that is there. */
static int note_program(void *arg, const struct natra_neighbour *e)
{
	struct found *missing = arg;

	if (!e->is_on_host)
		return 0;
	missing->is_overtaken |=
		e->is_before_ours && e->prog_id &&
		(strcmp(e->hook, "tcx") == 0) == missing->by_links;
	for (size_t i = 0; i < 3; i++) {
		if (e->is_ours && e->prog_id == missing->programs[i])
			missing->programs[i] = 0;
	}
	return 0;
}

static bool host_side_exists(const struct found *found)
{
	char ifname[IF_NAMESIZE];

	return if_indextoname(found->ifindex, ifname) != NULL;
}

/* Returns whether it has its place, or -1 if that cannot be told, as of a pod that ends: a kernel
 * without TCX lists no programs on an interface that is gone. A pod that has moved its own
 * interface away is no reason to leave the host side alone. */
static int has_place(struct natra *n, const struct found *found)
{
	struct found missing = *found;
	int r = natra_foreach_neighbour(n, found->id, note_program, &missing);

	if (r < 0 && r != -ENODEV)
		return -1;
	if (!missing.is_overtaken && !missing.programs[0] &&
	    !missing.programs[1] && !missing.programs[2])
		return 1;
	return host_side_exists(found) ? 0 : -1;
}

/* Returns whether the pod ended before its place was given back. */
static bool has_ended(struct natra *n, const struct found *found)
{
	const enum natra_code code = natra_error_code(n);

	return code == NATRA_CODE_NOT_ATTACHED || code == NATRA_CODE_NO_NETNS ||
	       !host_side_exists(found);
}

static enum hook_state restore(const struct hooks *hooks,
			       const struct found *found)
{
	int r = natra_upgrade(hooks->n, found->id);

	if (r < 0 && has_ended(hooks->n, found))
		return HOOK_UNKNOWN;
	if (r < 0)
		log_write(hooks->log, NATRA_LOG_WARN,
			  "%s: cannot be put back on '%s': %s", found->id,
			  found->ifname, natra_error(hooks->n));
	else
		log_write(
			hooks->log, NATRA_LOG_WARN,
			"%s: somebody took natra's place on '%s', which it has again",
			found->id, found->ifname);
	return r == 0 ? HOOK_RESTORED : HOOK_LOST;
}

/* Looks at one interface, or gives its place back. */
static void look(const struct hooks *hooks, size_t i)
{
	const struct found *found = &hooks->list[i];
	const bool restores = hooks->order->task == HOOKS_RESTORE;
	uint32_t *state = &hooks->report->list[i].state;
	int r;

	/* An interface that takes too long keeps this state. */
	*state = restores ? HOOK_LOST : HOOK_UNKNOWN;
	r = has_place(hooks->n, found);
	if (r < 0)
		*state = HOOK_UNKNOWN;
	else if (r)
		*state = HOOK_WELL;
	else if (!restores)
		*state = HOOK_MISSING;
	else if (found->entry->may_restore)
		*state = restore(hooks, found);
}

static size_t place(const struct hooks *hooks, size_t n)
{
	return (hooks->begin + n) % hooks->len;
}

static int walk(void *arg)
{
	struct hooks *hooks = arg;

	for (size_t n = 0; n < hooks->len; n++) {
		const size_t i = place(hooks, n);

		if (!hooks->list[i].is_wanted ||
		    !turn_begin(&hooks->turns, hooks->list[i].id))
			continue;
		hooks->report->list[i].has_begun = true;
		look(hooks, i);
		turn_end();
	}
	return 0;
}

static void list_all(struct hooks *hooks)
{
	struct hooks_report *report = hooks->report;

	report->len = hooks->len;
	for (size_t i = 0; i < hooks->len; i++) {
		const struct found *found = &hooks->list[i];

		report->list[i].ifindex = found->ifindex;
		if (hooks->order->task == HOOKS_RESTORE && found->is_wanted)
			report->list[i].state = HOOK_MISSING;
		if (found->ifindex == hooks->order->from_ifindex)
			hooks->begin = i;
	}
}

/* Notes where the next look goes on. */
static void note_next(const struct hooks *hooks)
{
	struct hooks_report *report = hooks->report;

	for (size_t n = 0; n < hooks->len && !report->next_ifindex; n++) {
		const struct hook_report *seen = &report->list[place(hooks, n)];

		if (!seen->has_begun)
			report->next_ifindex = seen->ifindex;
	}
}

void hooks_job_run(const struct jobs *jobs, const struct hooks_order *order,
		   struct hooks_report *report)
{
	struct hooks hooks = {
		.log = jobs->log,
		.order = order,
		.report = report,
	};
	size_t late = 0;
	int r = jobs_open(jobs, &hooks.n);

	if (r == 0)
		r = natra_foreach_stats(hooks.n, add, &hooks);
	if (r < 0 && hooks.n)
		(void)snprintf(report->error, sizeof(report->error), "%s",
			       natra_error(hooks.n));
	if (r == 0)
		r = turns_open(&hooks.turns, order->task == HOOKS_RESTORE
						     ? RESTORE_MAX_MS
						     : LOOK_MAX_MS);
	if (r == 0) {
		list_all(&hooks);
		r = turns_run(&hooks.turns, walk, &hooks, &late);
		if (order->task == HOOKS_LOOK_AT_ALL)
			note_next(&hooks);
	}
	if (r < 0 && !report->error[0])
		(void)snprintf(report->error, sizeof(report->error), "%s",
			       strerror(-r));
	report->r = r;
	turns_close(&hooks.turns);
	free(hooks.list);
	natra_close(hooks.n);
}
