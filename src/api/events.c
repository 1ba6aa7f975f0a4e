/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions that read events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "api/internal.h"
#include "api/structs.h"
#include "state/group_map.h"
#include "state/owner.h"
#include "state/pin_dir.h"
#include "state/ring.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "util/str.h"

#define TICK_NS  100000000L
/* So many attachments that are gone keep their names, of which events may still come. */
#define GONE_MAX 256

_Static_assert((int)NATRA_EVENT_MAX == (int)NATRA_REPORT_MAX &&
		       (int)NATRA_EVENT_OVER_LIMIT ==
			       (int)NATRA_REPORT_OVER_LIMIT,
	       "the reasons of programs are those of the API");

/* The parts of an attachment's record that its events need. */
struct named {
	uint64_t owner[LEG_MAX];
	bool has_host; /* LEG_INGRESS is then the backstop */
	/* By the class's number; that of the rest is "". */
	char class_name[1 + NATRA_CLASSES_MAX][NATRA_CLASS_NAME_MAX + 1];
	char id[NATRA_ID_MAX + 1];
	char label[NATRA_NAME_MAX + 1];
};

struct natra_events {
	struct natra *n;
	struct ring_view view;
	int timer_fd;
	uint64_t lost;      /* since the last event that was read */
	struct named *list; /* what is attached, and then what is gone */
	size_t len;
	uint64_t listed_ns; /* the list has what was attached at this time */
};

static int add_named(void *arg, const char *path)
{
	struct natra_events *events = arg;
	cleanup_pin_gen struct pin_gen gen = PIN_GEN_INIT;
	const struct record *record = &gen.record;
	struct record_classes classes = {0};
	struct named *list, *named;
	int r = pin_find_gen(events->n, path, &gen);

	if (r == 0 && record_slots(record) > 1)
		r = pin_read_classes(events->n, &gen, &classes);
	/* Without limits there are no programs that report. */
	if (r == -ENOENT || r == -ESTALE || (r == 0 && record->unshaped))
		return 0;
	if (r < 0)
		return r;
	list = realloc(events->list, (events->len + 1) * sizeof(*list));
	if (!list)
		return fail_errno(events->n, -ENOMEM, "list attachments");
	events->list = list;
	named = &list[events->len++];
	*named = (struct named){
		.has_host = record->leg[LEG_HOST].hook != RECORD_HOOK_NONE,
	};
	for (int i = 0; i < LEG_MAX; i++)
		named->owner[i] = record->slot[i].owner;
	for (uint32_t i = 1; i < record_slots(record); i++)
		(void)str_copy(named->class_name[i],
			       sizeof(named->class_name[i]),
			       classes.list[i - 1].name);
	(void)str_copy(named->id, sizeof(named->id), record->id);
	(void)str_copy(named->label, sizeof(named->label), record->label);
	return 0;
}

static bool is_slot_of(const struct named *named, uint64_t owner)
{
	for (int leg = 0; leg < LEG_MAX; leg++) {
		if (named->owner[leg] == owner)
			return true;
	}
	return false;
}

/* Returns the attachment that has the slot, or NULL. */
static const struct named *find_slot(const struct natra_events *events,
				     uint64_t owner)
{
	for (size_t i = 0; i < events->len; i++) {
		if (is_slot_of(&events->list[i], owner))
			return &events->list[i];
	}
	return NULL;
}

/* Returns the attachment that had it before an edit gave it others, or NULL. */
static const struct named *find_former(const struct natra_events *events,
				       uint64_t owner)
{
	for (size_t i = 0; i < events->len; i++) {
		if (owner_is_of(owner, events->list[i].id))
			return &events->list[i];
	}
	return NULL;
}

static void set_names(const struct named *named,
		      const struct natra_event_entry *entry,
		      struct natra_event *event)
{
	const enum leg leg = owner_leg(entry->owner);

	event->direction = leg == LEG_EGRESS ? NATRA_DIRECTION_EGRESS
					     : NATRA_DIRECTION_INGRESS;
	event->backstop = leg == LEG_INGRESS && named->has_host;
	memcpy(event->id, named->id, sizeof(event->id));
	memcpy(event->label, named->label, sizeof(event->label));
	/* An edit may have numbered the classes anew. */
	if (entry->class_number <= NATRA_CLASSES_MAX &&
	    is_slot_of(named, entry->owner))
		memcpy(event->class_name,
		       named->class_name[entry->class_number],
		       sizeof(event->class_name));
}

static bool is_listed(const struct natra_events *events, size_t len,
		      const struct named *named)
{
	for (size_t i = 0; i < len; i++) {
		if (memcmp(events->list[i].owner, named->owner,
			   sizeof(named->owner)) == 0)
			return true;
	}
	return false;
}

/* Adds those of a former list that are gone by now, the newest of them first. */
static int keep_gone(struct natra_events *events, const struct named *former,
		     size_t former_len)
{
	const size_t attached = events->len;
	const size_t most = former_len < GONE_MAX ? former_len : GONE_MAX;
	struct named *list;

	if (!most)
		return 0;
	list = realloc(events->list, (attached + most) * sizeof(*list));
	if (!list)
		return fail_errno(events->n, -ENOMEM, "list attachments");
	events->list = list;
	for (size_t i = 0; i < former_len && events->len < attached + most;
	     i++) {
		if (!is_listed(events, attached, &former[i]))
			events->list[events->len++] = former[i];
	}
	return 0;
}

static int list_again(struct natra_events *events)
{
	struct named *former = events->list;
	const size_t former_len = events->len;
	int r;

	events->list = NULL;
	events->len = 0;
	r = pin_dir_foreach_id(events->n, add_named, events);
	if (r == 0)
		r = keep_gone(events, former, former_len);
	if (r < 0) {
		free(events->list);
		events->list = former;
		events->len = former_len;
		return r;
	}
	free(former);
	return 0;
}

/* Finds out whose event it is. Lists the attachments again if the event is newer than
 * the list. An older event whose attachment is gone causes no new list. */
static int name_event(struct natra_events *events,
		      const struct natra_event_entry *entry,
		      struct natra_event *event)
{
	/* No slot has the owner 0, which is on record for a leg that is not used. */
	const struct named *named =
		entry->owner ? find_slot(events, entry->owner) : NULL;

	if (entry->owner && !named && event->time_ns >= events->listed_ns) {
		const uint64_t listed_ns = clock_ns(CLOCK_MONOTONIC);
		int r = list_again(events);

		if (r < 0)
			return r;
		events->listed_ns = listed_ns;
		named = find_slot(events, entry->owner);
	}
	if (entry->owner && !named)
		named = find_former(events, entry->owner);
	if (named)
		set_names(named, entry, event);
	return 0;
}

int natra_events_open(struct natra *n, struct natra_events **ret_events)
{
	const struct itimerspec tick = {{.tv_nsec = TICK_NS},
					{.tv_nsec = TICK_NS}};
	cleanup_ring_view struct ring_view view = {0};
	cleanup_close int timer_fd = -1;
	struct natra_events *events;
	int r;

	if (!begin_call(n))
		return -EINVAL;
	if (!ret_events)
		return refuse(n, -EINVAL, "ret_events: missing");
	r = ring_open(n, &view);
	if (r == -ENOENT)
		return refuse(
			n, r,
			"there are no events: nothing is attached, or only by an older natra (natractl upgrade)");
	if (r < 0)
		return r;
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (timer_fd < 0 || timerfd_settime(timer_fd, 0, &tick, NULL) < 0)
		return fail_errno(n, -errno, "make a timer");
	events = calloc(1, sizeof(*events));
	if (!events)
		return fail_errno(n, -ENOMEM, "read events");
	events->n = n;
	events->view = view;
	events->timer_fd = TAKE_FD(timer_fd);
	view = (struct ring_view){0};
	*ret_events = events;
	return finish(n, 0);
}

void natra_events_close(struct natra_events *events)
{
	if (!events)
		return;
	ring_close(&events->view);
	cleanup_closep(&events->timer_fd);
	free(events->list);
	free(events);
}

int natra_events_fd(const struct natra_events *events)
{
	return events ? events->timer_fd : -EINVAL;
}

/* Finds the name of the group that has this place, without the lock: a reader does not wait for
 * whoever changes groups. A group that is gone has no name. */
static int name_group(struct natra *n, uint32_t place,
		      struct natra_event *event)
{
	int r;

	if (!place || place > 2 * NATRA_GROUPS)
		return 0;
	r = groups_name(n, (place - 1) / 2 + 1, event->group,
			sizeof(event->group));
	return r == -ENOENT ? 0 : r;
}

/* Reads an entry. If another ring has taken the place of this one, goes on with
 * that. */
static int read_entry(struct natra_events *events,
		      struct natra_event_entry *entry)
{
	struct ring_view view = {0};
	int r = ring_read(&events->view, entry, &events->lost);

	if (r)
		return r;
	r = ring_is_replaced(events->n, &events->view);
	if (r <= 0)
		return r;
	r = ring_open(events->n, &view);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	ring_close(&events->view);
	events->view = view;
	return ring_read(&events->view, entry, &events->lost);
}

/* Makes the descriptor unreadable until the timer's next tick. */
static void await_tick(const struct natra_events *events)
{
	uint64_t ticks;

	/* There is nothing to read if the timer has not ticked since. */
	if (read(events->timer_fd, &ticks, sizeof(ticks)) < 0)
		return;
}

int natra_events_read(struct natra_events *events,
		      struct natra_event *ret_event)
{
	struct natra_event event = {
		.sz = sizeof(event),
		.direction = NATRA_DIRECTION_NONE,
	};
	struct natra_event_entry entry;
	int r;

	if (!events || !begin_call(events->n))
		return -EINVAL;
	r = struct_out_check(events->n, "ret_event", ret_event, EXTENT_EVENT);
	if (r == 0)
		r = read_entry(events, &entry);
	if (r == 0)
		await_tick(events);
	if (r <= 0)
		return finish(events->n, r);
	event.reason = (enum natra_event_reason)entry.reason;
	event.time_ns = entry.time_ns;
	if (event.reason == NATRA_EVENT_OVER_LIMIT)
		event.over_limit_percent = entry.tuple.saddr[0];
	else
		event.flow = flow_of_tuple(&entry.tuple);
	event.lost = events->lost;
	r = name_event(events, &entry, &event);
	if (r == 0 && event.reason == NATRA_EVENT_OVER_LIMIT)
		r = name_group(events->n, entry.tuple.saddr[1], &event);
	if (r < 0) {
		events->lost++;
		return r;
	}
	events->lost = 0;
	r = struct_out(events->n, "ret_event", ret_event, EXTENT_EVENT, &event);
	return finish(events->n, r < 0 ? r : 1);
}
