/* SPDX-License-Identifier: BSD-2-Clause */
#include "hookwatch.h"

#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "../common/memory.h"
#include "tcnotice.h"

/* The job ends by itself before: its walk takes a minute at most, and the interfaces that take too long
 * a second one. */
#define JOB_MAX_MS     180000
/* Who replaces its filters does so in several calls. */
#define GATHER_MS      20
/* Jobs that follow each other have this between their beginnings, and much more where what
 * changes is nothing of natra's. */
#define GAP_MS         200
#define STRANGE_GAP_MS 5000
#define PERIOD_MS      10000
/* If changes on an interface leave natra its place time and again, the distance of looks there
 * doubles so often, and is PERIOD_MS then. */
#define VAIN_LOOKS_MAX 6
/* A place is given back this often, and the time between doubles each time, from FIRST_WAIT_MS
 * on; then natra leaves it until it was quiet for QUIET_MS. */
#define ROUNDS_MAX     5
#define FIRST_WAIT_MS  500
#define QUIET_MS       600000

/* Returns when an entry's place may be given back. */
static uint64_t due_ms(const struct hook_entry *entry)
{
	return entry->rounds ? entry->last_ms + ((uint64_t)FIRST_WAIT_MS
						 << (entry->rounds - 1))
			     : 0;
}

/* Returns how long after a look at an entry the next one is worth while. */
static uint64_t gap_ms(const struct hook_entry *entry)
{
	return entry->vain_looks < VAIN_LOOKS_MAX
		       ? (uint64_t)GAP_MS << entry->vain_looks
		       : PERIOD_MS;
}

static bool may_look(const struct hook_entry *entry, uint64_t now_ms)
{
	return !entry->vain_looks || entry->asked_ms + gap_ms(entry) <= now_ms;
}

static uint64_t least_gap_ms(const struct hookwatch *h)
{
	return h->has_failed ? STRANGE_GAP_MS : GAP_MS;
}

/* Returns when all are looked at again. A look at 1000 pods takes a minute while others always hold RTNL,
 * the kernel's lock for changes of interfaces, and leaves it to them for as long. */
static uint64_t all_due_ms(const struct hookwatch *h)
{
	uint64_t gap = h->looks_at_all ? least_gap_ms(h) : PERIOD_MS;

	if (gap < 2 * h->all_took_ms)
		gap = 2 * h->all_took_ms;
	return h->all_looked_ms + gap;
}

/* Sets the timer for the first thing that is to be done. */
static void arm(struct hookwatch *h)
{
	const uint64_t now_ms = clock_ms();
	const uint64_t least_ms = h->looked_ms + least_gap_ms(h);
	uint64_t at_ms = all_due_ms(h);

	if (h->work.pid || h->work.is_waiting)
		return;
	if (h->is_strange && at_ms > h->looked_ms + STRANGE_GAP_MS)
		at_ms = h->looked_ms + STRANGE_GAP_MS;
	for (size_t i = 0; i < h->len; i++) {
		const struct hook_entry *entry = &h->list[i];
		uint64_t entry_ms = due_ms(entry);

		if (!entry->is_dirty || entry->is_given_up)
			continue;
		if (entry->vain_looks &&
		    entry_ms < entry->asked_ms + gap_ms(entry))
			entry_ms = entry->asked_ms + gap_ms(entry);
		at_ms = entry_ms < at_ms ? entry_ms : at_ms;
	}
	at_ms = at_ms < least_ms ? least_ms : at_ms;
	if (at_ms < now_ms + GATHER_MS)
		at_ms = now_ms + GATHER_MS;
	/* Changes that follow each other must not put off the first one's look. */
	if (h->next.is_set && h->next_ms <= at_ms)
		return;
	h->next_ms = at_ms;
	timer_set(&h->next, at_ms - now_ms);
}

/* Takes note of a change on an interface. */
static bool note(void *arg, uint32_t ifindex)
{
	struct hookwatch *h = arg;
	struct hook_entry *entry = hook_find(h->list, h->len, ifindex);

	if (!entry) {
		h->is_strange = true;
		return true;
	}
	/* Of two who fight natra is the one that stops, and this is all that it costs. */
	if (entry->is_given_up || entry->is_dirty)
		return false;
	/* It was quiet for longer than natra has waited. */
	if (clock_ms() - entry->asked_ms > 2 * gap_ms(entry))
		entry->vain_looks = 0;
	entry->is_dirty = true;
	return true;
}

static void changed(void *arg, uint32_t events)
{
	struct hookwatch *h = arg;
	bool is_new = false;

	(void)events;
	if (tcnotice_read(h->notices.fd, note, h, &is_new) < 0)
		h->looks_at_all = is_new = true;
	if (is_new)
		arm(h);
}

static void run(void *arg)
{
	const struct hookwatch *h = arg;
	const struct hooks_order order = {h->task, h->list, h->len,
					  h->from_ifindex};

	hooks_job_run(h->jobs, &order, h->work.report);
}

static void look(void *arg)
{
	struct hookwatch *h = arg;
	const uint64_t now_ms = clock_ms();
	const bool all = now_ms >= all_due_ms(h);

	for (size_t i = 0; i < h->len; i++) {
		struct hook_entry *entry = &h->list[i];

		if (now_ms - entry->last_ms > QUIET_MS) {
			entry->rounds = 0;
			entry->is_given_up = false;
		}
		entry->may_restore =
			entry->rounds < ROUNDS_MAX && due_ms(entry) <= now_ms;
		entry->is_asked =
			entry->is_dirty && (all || may_look(entry, now_ms));
		if (!entry->is_asked)
			continue;
		entry->is_dirty = false;
		entry->asked_ms = now_ms;
	}
	/* The next look finds out about changes from here on. */
	h->task = all ? HOOKS_LOOK_AT_ALL : HOOKS_LOOK;
	h->is_strange = false;
	h->looked_ms = now_ms;
	if (all) {
		h->looks_at_all = false;
		h->all_looked_ms = now_ms;
	}
	h->work.sets_limits = false;
	work_start(&h->work);
}

/* Gives places back while no other job attaches anything again. */
static void restore(struct hookwatch *h)
{
	h->task = HOOKS_RESTORE;
	h->work.sets_limits = true;
	work_start(&h->work);
}

static void give_up(struct hookwatch *h, struct hook_entry *entry)
{
	char ifname[IF_NAMESIZE] = "?";

	entry->is_given_up = true;
	entry->is_dirty = false;
	log_write(
		h->jobs->log, NATRA_LOG_ERROR,
		"somebody takes natra's place on '%s' each time that it is put back (%d times): its limits may not hold, and natra leaves it for %d minutes; `natractl doctor` says more",
		if_indextoname(entry->ifindex, ifname) ? ifname : "?",
		ROUNDS_MAX, QUIET_MS / 60000);
}

/* Takes over the state of an interface in place of what was known of it. */
static void update(struct hookwatch *h, struct hook_entry *entry,
		   uint32_t state)
{
	const uint64_t now_ms = clock_ms();

	entry->is_missing = state == HOOK_MISSING;
	if (state == HOOK_WELL && entry->is_asked &&
	    entry->vain_looks < VAIN_LOOKS_MAX)
		entry->vain_looks++;
	if (state == HOOK_RESTORED || state == HOOK_LOST)
		entry->vain_looks = 0;
	if (state == HOOK_RESTORED ||
	    (state == HOOK_LOST && entry->may_restore)) {
		entry->rounds++;
		entry->last_ms = now_ms;
		h->health->hook_repairs += state == HOOK_RESTORED;
	}
	if (state != HOOK_LOST)
		return;
	if (entry->rounds >= ROUNDS_MAX && !entry->is_given_up)
		give_up(h, entry);
	else
		entry->is_dirty = true;
}

/* Keeps in mind what a job was to look at that failed. */
static void ask_again(struct hookwatch *h)
{
	h->looks_at_all |= h->task == HOOKS_LOOK_AT_ALL;
	for (size_t i = 0; i < h->len; i++)
		h->list[i].is_dirty |=
			h->list[i].is_asked || h->list[i].is_missing;
}

/* Returns what is known of an interface apart from its state. */
static struct hook_entry known(const struct hookwatch *h,
			       const struct hook_report *seen)
{
	const struct hook_entry *old =
		hook_find(h->list, h->len, seen->ifindex);
	struct hook_entry entry = {
		.ifindex = seen->ifindex,
		.may_restore = true,
	};

	if (old)
		entry = *old;
	/* There was no time for it, or one that gives places back is the first job to see it. */
	if (!seen->has_begun &&
	    (!old || (old->is_asked && h->task != HOOKS_RESTORE)))
		entry.is_dirty = true;
	return entry;
}

static void done(void *arg, enum work_end end)
{
	struct hookwatch *h = arg;
	const struct hooks_report *report = h->work.report;
	struct hook_entry *list;
	bool is_missing = false;

	if (h->task == HOOKS_LOOK_AT_ALL)
		h->all_took_ms = clock_ms() - h->all_looked_ms;
	if (end != WORK_DONE || report->r < 0) {
		if (!h->has_failed)
			log_write(
				h->jobs->log, NATRA_LOG_WARN,
				"the hooks on the host side are not looked at: %s",
				end == WORK_DONE ? report->error
						 : "ended half-way");
		h->has_failed = true;
		ask_again(h);
		arm(h);
		return;
	}
	h->has_failed = false;
	if (h->task == HOOKS_LOOK_AT_ALL)
		h->from_ifindex = report->next_ifindex;
	list = memory_new((report->len + 1) * sizeof(*list));
	h->health->contested_hooks = 0;
	for (size_t i = 0; i < report->len; i++) {
		list[i] = known(h, &report->list[i]);
		update(h, &list[i], report->list[i].state);
		is_missing |= list[i].is_missing;
		h->health->contested_hooks += list[i].is_given_up;
	}
	free(h->list);
	h->list = list;
	h->len = report->len;
	if (is_missing)
		restore(h);
	else
		arm(h);
}

int hookwatch_open(struct hookwatch *h, struct workers *workers)
{
	int r;

	h->notices = (struct source){tcnotice_open(), changed, h};
	if (h->notices.fd < 0)
		log_write(h->jobs->log, NATRA_LOG_WARN,
			  "hooks are looked at every %d s only: %s",
			  PERIOD_MS / 1000, strerror(-h->notices.fd));
	h->work = (struct work){
		.name = "the hooks on the host side",
		.run = run,
		.done = done,
		.arg = h,
		.report_size = sizeof(struct hooks_report),
		.time_max_ms = JOB_MAX_MS,
	};
	r = work_open(&h->work, workers);
	if (r == 0)
		r = timer_open(&h->next, workers->loop, look, h);
	if (r == 0 && h->notices.fd >= 0)
		r = loop_add(workers->loop, &h->notices, EPOLLIN);
	if (r < 0)
		return r;
	h->looks_at_all = true;
	arm(h);
	return 0;
}

void hookwatch_close(struct hookwatch *h)
{
	if (!h->work.workers)
		return;
	if (h->notices.fd >= 0)
		loop_close_source(h->work.workers->loop, &h->notices);
	timer_close(&h->next, h->work.workers->loop);
	work_close(&h->work);
	free(h->list);
	h->list = NULL;
	h->len = 0;
}
