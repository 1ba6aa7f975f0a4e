/* SPDX-License-Identifier: BSD-2-Clause */
#include "edits.h"

#include <stdio.h>
#include <string.h>

#include "../common/text.h"

/* Changes that come within this time are handled by one job. */
#define GATHER_MS     10
#define RETRY_MS      2000
#define JOB_MAX_MS    60000
/* The shortest and the longest time between two readings of all pods, for those for whose
 * annotations there was no room. */
#define REREAD_MIN_MS 5000
#define REREAD_MAX_MS 60000
#define SUM_UP_MS     60000

/* Gives the edit another text, which it owns then, or none. */
static void set_text(struct edits_queue *q, struct edit *edit, char *text)
{
	free(edit->annotations);
	q->bytes -= edit->len;
	edit->annotations = text;
	edit->len = text ? strlen(text) : 0;
	q->bytes += edit->len;
}

static void edit_free(struct edits_queue *q, struct edit *edit)
{
	set_text(q, edit, NULL);
	q->len--;
	free(edit->uid);
	free(edit->namespace);
	free(edit->name);
	free(edit->mirrored);
	free(edit);
}

static struct edit *take_first(struct edits_queue *q)
{
	struct edit *edit = q->first;

	q->first = edit->next;
	if (!q->first)
		q->end = &q->first;
	return edit;
}

static void add_last(struct edits_queue *q, struct edit *edit)
{
	edit->next = NULL;
	*q->end = edit;
	q->end = &edit->next;
}

static struct edit *find(struct edit *list, const char *uid)
{
	while (list && strcmp(list->uid, uid) != 0)
		list = list->next;
	return list;
}

/* Takes the edit of this pod that would be tried again out of its list; NULL if there is
 * none. */
static struct edit *take_later(struct edits_queue *q, const char *uid)
{
	struct edit **at = &q->later;
	struct edit *edit;

	while (*at && strcmp((*at)->uid, uid) != 0)
		at = &(*at)->next;
	edit = *at;
	if (edit)
		*at = edit->next;
	return edit;
}

/* Each edit waits for itself: one that fails as long as its pod is there does not put off those
 * that fail for a moment. */
static void put_off(struct edit *edit)
{
	uint64_t wait_ms = backoff_next_ms(&edit->backoff, 0);

	if (!edit->annotations && wait_ms < REREAD_MIN_MS)
		wait_ms = REREAD_MIN_MS;
	edit->due_ms = clock_ms() + wait_ms;
}

static void keep_for_later(struct edits_queue *q, struct edit *edit)
{
	put_off(edit);
	edit->next = q->later;
	q->later = edit;
}

/* Lets the edits that are tried again later lose their annotations, the longest first, until
 * there is room. Returns whether there is. */
static bool make_room(struct edits_queue *q, size_t len)
{
	while (q->bytes + len > EDITS_BYTES_MAX) {
		struct edit *longest = q->later;

		for (struct edit *e = q->later; e; e = e->next) {
			if (e->len > longest->len)
				longest = e;
		}
		if (!longest || !longest->len)
			return false;
		set_text(q, longest, NULL);
		put_off(longest);
	}
	return true;
}

/* Takes over the text of a pod's annotations. */
static void take_text(struct edits_queue *q, struct edit *edit, char *text,
		      uint64_t hash)
{
	set_text(q, edit, NULL);
	edit->hash = hash;
	if (make_room(q, strlen(text)))
		set_text(q, edit, text);
	else
		free(text);
}

/* Returns whether the annotations are those that this pod had; if not, they are
 * noted. */
static bool is_seen(struct edits_queue *q, const char *uid, uint64_t value)
{
	uint64_t key = text_hash(uid);
	size_t at = key % EDITS_SEEN_MAX;

	if (q->seen[at].uid == key && q->seen[at].annotations == value)
		return true;
	q->seen[at].uid = key;
	q->seen[at].annotations = value;
	return false;
}

void edits_remove(struct edits_queue *q, const struct podevent *event)
{
	struct edit *edit = find(q->first, event->uid);
	struct edit *later = take_later(q, event->uid);
	uint64_t key = text_hash(event->uid);

	if (q->seen[key % EDITS_SEEN_MAX].uid == key)
		q->seen[key % EDITS_SEEN_MAX].uid = 0;
	if (later)
		edit_free(q, later);
	if (edit)
		edit->is_gone = true;
}

/* Makes the pod's next event count even if its annotations are the same: the server
 * reports a pod before it has an interface, and again when it runs. */
static void forget(struct edits_queue *q, const struct edit *edit)
{
	uint64_t key = text_hash(edit->uid);
	size_t at = key % EDITS_SEEN_MAX;

	/* If they have changed since, that is in the queue. */
	if (q->seen[at].uid == key && q->seen[at].annotations == edit->hash)
		q->seen[at].uid = 0;
}

static void run(void *arg)
{
	const struct edits_queue *q = arg;

	edits_job_run(q->jobs, q->first, q->work.report);
}

static void sum_up(void *arg)
{
	struct edits_queue *q = arg;
	struct log_words words = {0};

	log_add_u64(&words, "edits", q->unsaid);
	log_add(&words, "namespace", q->unsaid_namespace);
	log_line(q->jobs->log, NATRA_LOG_WARN,
		 "more edits are not logged, the first of this namespace",
		 &words);
	q->unsaid = 0;
}

/* A tenant who edits a pod all the time must not fill the log with it. */
static void leave_out(struct edits_queue *q, const struct edit *edit)
{
	if (q->unsaid++)
		return;
	(void)snprintf(q->unsaid_namespace, sizeof(q->unsaid_namespace), "%s",
		       edit->namespace);
	timer_set(&q->sum_up, SUM_UP_MS);
}

static void say(struct edits_queue *q, const struct edit *edit,
		const struct edit_result *result)
{
	struct log_words words = {0};
	const bool is_new = (result->is_failed && !edit->has_failed) ||
			    (result->is_held && !edit->was_held) ||
			    (result->is_over && !edit->was_over);

	/* A failure that lasts is reported once. */
	if (!result->is_bad && !is_new)
		return;
	if (q->refused)
		q->refused(q->arg, edit, result);
	if (!tenants_may(&q->lines, edit->uid, edit->namespace)) {
		leave_out(q, edit);
		return;
	}
	tenants_take(&q->lines, edit->uid, edit->namespace);
	log_add(&words, "namespace", edit->namespace);
	log_add(&words, "pod", edit->name);
	log_add(&words, "error", result->message);
	log_line(q->jobs->log,
		 result->is_over ? NATRA_LOG_WARN : NATRA_LOG_ERROR,
		 result->is_held   ? "the pod's limits are not edited"
		 : result->is_over ? "the maximum of the pod's namespace holds"
				   : "the pod keeps the limits that it has",
		 &words);
}

/* Accounts for an edit that has taken effect. The job has logged it, unless it was to be quiet. */
static void note_change(struct edits_queue *q, const struct edit *edit)
{
	if (edit->is_quiet)
		leave_out(q, edit);
	else
		tenants_take(&q->lines, edit->uid, edit->namespace);
	if (q->followed)
		q->followed(q->arg);
}

static const struct edit *first_fast(const struct edits_queue *q)
{
	const struct edit *edit = q->first;

	while (edit && edit->is_slow)
		edit = edit->next;
	return edit;
}

static void begin(void *arg)
{
	struct edits_queue *q = arg;
	const struct edit *fast = first_fast(q);
	size_t count = 0;

	if (!q->first || q->work.pid || q->work.is_waiting)
		return;
	/* Slow ones come behind all others. */
	while (fast && q->first != fast)
		add_last(q, take_first(q));
	for (struct edit *edit = q->first; edit && count < EDITS_MAX;
	     edit = edit->next, count++)
		edit->is_quiet =
			!tenants_may(&q->lines, edit->uid, edit->namespace);
	work_start(&q->work);
}

/* Those that are nearly due come along, since each job reads all results. */
static bool is_due(const struct edit *edit, uint64_t now_ms)
{
	return edit->due_ms <= now_ms + edit->backoff.bound_ms / 4;
}

static void wait_for_first(struct edits_queue *q)
{
	const struct edit *first = q->later;
	const uint64_t now_ms = clock_ms();

	timer_stop(&q->again);
	for (const struct edit *edit = q->later; edit; edit = edit->next) {
		if (edit->due_ms < first->due_ms)
			first = edit;
	}
	if (first)
		timer_set(&q->again,
			  first->due_ms > now_ms ? first->due_ms - now_ms : 0);
}

/* Gets an event of each pod for whose annotations there was no room. All pods of the node are
 * asked for, so that is done less and less often as long as there is none. */
static void reread(struct edits_queue *q)
{
	const uint64_t now_ms = clock_ms();
	size_t count = 0;

	for (const struct edit *edit = q->later; edit; edit = edit->next) {
		if (!edit->annotations)
			count++;
	}
	if (!count && !q->first)
		q->reread_wait_ms = 0;
	if (!count || now_ms < q->reread_ms)
		return;
	q->reread_wait_ms =
		q->reread_wait_ms ? 2 * q->reread_wait_ms : REREAD_MIN_MS;
	if (q->reread_wait_ms > REREAD_MAX_MS)
		q->reread_wait_ms = REREAD_MAX_MS;
	q->reread_ms = now_ms + q->reread_wait_ms;
	for (const struct edit *edit = q->later; edit; edit = edit->next) {
		if (!edit->annotations)
			forget(q, edit);
	}
	log_write(q->jobs->log, NATRA_LOG_WARN,
		  "pods are read again, since there is no room for their"
		  " annotations: %zu",
		  count);
	q->reread(q->arg);
}

static void try_again(void *arg)
{
	struct edits_queue *q = arg;
	struct edit **at = &q->later, *edit;
	const uint64_t now_ms = clock_ms();

	while ((edit = *at)) {
		if (is_due(edit, now_ms)) {
			*at = edit->next;
			add_last(q, edit);
		} else {
			at = &edit->next;
		}
	}
	wait_for_first(q);
	if (q->first && !q->work.pid && !q->next.is_set)
		timer_set(&q->next, 0);
}

/* Does with the first edit of the queue what follows from its result. */
static void conclude(struct edits_queue *q, const struct edit_result *result)
{
	struct edit *edit = take_first(q);

	if (result->is_changed)
		note_change(q, edit);
	/* It may have got its interface after the job had looked for it. */
	if (!result->is_found && edit->is_reported)
		edit->is_newer = true;
	edit->is_reported = false;
	if (edit->is_newer && !edit->is_gone) {
		edit->is_newer = false;
		add_last(q, edit);
		return;
	}
	say(q, edit, result);
	if (!result->is_found)
		forget(q, edit);
	edit->has_failed |= result->is_failed;
	edit->was_held |= result->is_held;
	edit->was_over |= result->is_over;
	if ((result->is_failed || result->is_later ||
	     (result->is_found && !edit->annotations)) &&
	    !edit->is_gone)
		keep_for_later(q, edit);
	else
		edit_free(q, edit);
}

/* Puts the pod on which a job has not ended behind the others, which are tried at once.
 * If it had the job for itself, it has failed. */
static void set_aside(struct edits_queue *q, size_t index)
{
	static const struct edit_result late = {
		.is_found = true,
		.is_failed = true,
		.message = "it takes too long to change its limits",
	};

	for (; index; index--)
		add_last(q, take_first(q));
	if (q->first->is_slow) {
		conclude(q, &late);
		return;
	}
	q->first->is_slow = true;
	add_last(q, take_first(q));
}

static void done(void *arg, enum work_end end)
{
	struct edits_queue *q = arg;
	const struct edits_report *report = q->work.report;

	if (end != WORK_DONE && report->now) {
		set_aside(q, report->now - 1);
	} else if (end != WORK_DONE || report->r < 0) {
		log_write(q->jobs->log, NATRA_LOG_ERROR,
			  "the pods' annotations: %s",
			  end == WORK_DONE ? strerror(-report->r)
					   : "the job did not end");
		timer_set(&q->next, RETRY_MS);
		return;
	}
	/* Edits that came while the job ran are in the queue behind those that it has
	 * handled. */
	for (size_t i = 0; end == WORK_DONE && i < report->count; i++)
		conclude(q, &report->results[i]);
	reread(q);
	wait_for_first(q);
	if (q->first)
		timer_set(&q->next, 0);
}

/* Returns the pod's edit that would be tried again if it has these annotations, else a new
 * one. */
static struct edit *find_or_make(struct edits_queue *q,
				 const struct podevent *event, uint64_t hash)
{
	struct edit *edit = take_later(q, event->uid);
	bool is_slow = false;

	if (edit && edit->hash == hash)
		return edit;
	/* It takes as long with other annotations. */
	if (edit) {
		is_slow = edit->is_slow;
		edit_free(q, edit);
	}
	edit = memory_new(sizeof(*edit));
	edit->is_slow = is_slow;
	q->len++;
	edit->uid = text_copy(event->uid);
	edit->namespace = text_copy(event->namespace);
	edit->name = text_copy(event->name);
	edit->mirrored = text_copy(event->mirrored);
	return edit;
}

bool edits_add(struct edits_queue *q, const struct podevent *event)
{
	char *text = cJSON_PrintUnformatted(event->annotations);
	const uint64_t hash = text_hash(text);
	struct edit *edit = find(q->first, event->uid);

	if (!edit && q->len >= EDITS_PODS_MAX) {
		free(text);
		return false;
	}
	if (edit) {
		/* A static pod that comes back has the same uid. */
		edit->is_gone = false;
		edit->is_reported = q->work.pid != 0;
	}
	if (is_seen(q, event->uid, hash)) {
		free(text);
		return true;
	}
	if (edit) {
		edit->is_newer = q->work.pid != 0;
		/* If the pod was only read again, its failure was said. */
		if (edit->hash != hash)
			edit->has_failed = edit->was_held = edit->was_over =
				false;
	} else {
		edit = find_or_make(q, event, hash);
		add_last(q, edit);
	}
	take_text(q, edit, text, hash);
	if (!q->work.pid && !q->next.is_set)
		timer_set(&q->next, GATHER_MS);
	return true;
}

void edits_forget(struct edits_queue *q)
{
	memset(q->seen, 0, sizeof(q->seen));
}

int edits_open(struct edits_queue *q, struct workers *workers)
{
	int r;

	q->end = &q->first;
	q->next.source.fd = q->again.source.fd = q->sum_up.source.fd = -1;
	q->work = (struct work){
		.name = "edits of annotations",
		.run = run,
		.done = done,
		.arg = q,
		.report_size = sizeof(struct edits_report),
		.time_max_ms = JOB_MAX_MS,
		.sets_limits = true,
	};
	r = work_open(&q->work, workers);
	if (r == 0)
		r = timer_open(&q->next, workers->loop, begin, q);
	if (r == 0)
		r = timer_open(&q->again, workers->loop, try_again, q);
	return r < 0 ? r : timer_open(&q->sum_up, workers->loop, sum_up, q);
}

void edits_close(struct edits_queue *q)
{
	if (!q->work.workers)
		return;
	timer_close(&q->next, q->work.workers->loop);
	timer_close(&q->again, q->work.workers->loop);
	timer_close(&q->sum_up, q->work.workers->loop);
	if (q->unsaid)
		sum_up(q);
	work_close(&q->work);
	while (q->later) {
		struct edit *edit = q->later;

		q->later = edit->next;
		edit_free(q, edit);
	}
	while (q->first)
		edit_free(q, take_first(q));
}
