/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the API server's watch of pods from bytes to edits: there is no crash, a pod has one
 * place in the queue, and what is read does not depend on how the bytes are cut. The input
 * begins with a byte from which the sizes of the parts follow.
 */
#include <stdio.h>

#include "../../tools/agent/edits.h"
#include "../../tools/agent/podproto.h"
#include "../../tools/agent/podwatch.h"
#include "../../tools/common/json.h"
#include "../../tools/common/text.h"
#include "fuzz.h"

struct case_ {
	struct podwatch watch;
	struct edits_queue edits;
	uint64_t seen; /* a hash of what was seen, in its order */
	size_t count;
	bool has_ended;
};

static struct timer
	*running; /* of the timers that are set, only the last matters */
static uint64_t now_ms;

uint64_t clock_ms(void)
{
	return now_ms;
}

int timer_open(struct timer *timer, struct loop *loop, void (*expired)(void *),
	       void *arg)
{
	(void)loop;
	*timer = (struct timer){.expired = expired, .arg = arg};
	return 0;
}

void timer_set(struct timer *timer, uint64_t delay_ms)
{
	require(delay_ms <= 600000);
	timer->is_set = true;
	running = timer;
}

void timer_stop(struct timer *timer)
{
	timer->is_set = false;
}

void timer_close(struct timer *timer, struct loop *loop)
{
	(void)loop;
	timer->is_set = false;
}

int api_start(struct api *api, struct api_request *request, const char *path,
	      const char *body, long time_max_ms)
{
	(void)api;
	(void)body;
	(void)time_max_ms;
	/* A version becomes a part of it. */
	require(!strpbrk(path, " \r\n#"));
	request->easy = request;
	return 0;
}

long api_status(const struct api_request *request)
{
	(void)request;
	return 200;
}

void api_cancel(struct api *api, struct api_request *request)
{
	(void)api;
	request->easy = NULL;
}

int work_open(struct work *work, struct workers *workers)
{
	work->workers = workers;
	work->report = calloc(1, work->report_size);
	return work->report ? 0 : -1;
}

/* Each pod of the queue has a place, and a text that is JSON. */
void work_start(struct work *work)
{
	const struct edits_queue *q = work->arg;
	struct edits_report *report = work->report;
	size_t at;

	memset(report, 0, sizeof(*report));
	for (const struct edit *e = q->first; e && report->count < EDITS_MAX;
	     e = e->next) {
		struct edit_result *result = &report->results[report->count++];

		require(e->uid[0] && e->name[0] && e->namespace[0]);
		require(json_check(e->annotations, strlen(e->annotations),
				   &at));
		for (const struct edit *o = e->next; o; o = o->next)
			require(strcmp(e->uid, o->uid) != 0);
		result->is_found = e->uid[0] & 1;
		result->is_failed = e->uid[0] & 2;
		result->is_later = e->uid[0] & 4;
	}
	work->done(work->arg, WORK_DONE);
}

void work_close(struct work *work)
{
	free(work->report);
	work->report = NULL;
}

void edits_job_run(const struct jobs *jobs, const struct edit *first,
		   struct edits_report *report)
{
	(void)jobs;
	(void)first;
	(void)report;
}

static void mix(struct case_ *c, const char *text)
{
	c->seen = c->seen * 31 + text_hash(text);
	c->count++;
}

static bool seen(void *arg, const struct podevent *event)
{
	struct case_ *c = arg;

	require(event->type == PODEVENT_PRESENT ||
		event->type == PODEVENT_GONE);
	require(event->uid[0] && event->name[0] && event->namespace[0]);
	mix(c, event->uid);
	mix(c, event->version);
	if (event->type == PODEVENT_PRESENT)
		return edits_add(&c->edits, event);
	edits_remove(&c->edits, event);
	return true;
}

static void unreadable(void *arg, const struct podevent *event, const char *why)
{
	require(event->uid[0] && event->name[0] && event->namespace[0]);
	mix(arg, why);
	mix(arg, event->uid);
}

/* Sends the bytes in parts, all at once if `seed` is 0. */
static void talk(struct case_ *c, const uint8_t *data, size_t size,
		 unsigned int seed)
{
	static struct workers workers;
	struct jobs jobs = {0};
	struct log log = LOG_INIT;
	struct health health;
	struct api api = {.loop = (struct loop *)&workers};
	struct podfeed feed = {&health, seen, unreadable, c, 0};

	health_init(&health, &log);
	jobs.log = &log;
	*c = (struct case_){
		.watch = {.api = &api,
			  .feed = &feed,
			  .log = &log,
			  .node = "n",
			  .silence_ms = 130000},
		.edits = {.jobs = &jobs},
	};
	now_ms = 1000;
	require(edits_open(&c->edits, &workers) == 0);
	require(podwatch_open(&c->watch) == 0);
	podwatch_begin(&c->watch);
	c->watch.timer.expired(c->watch.timer.arg);
	while (size && !c->has_ended) {
		size_t part = seed ? 1 + seed % 61 : size;
		char *bytes;

		seed = seed * 1103515245U + 12345U;
		part = part < size ? part : size;
		bytes = text_of(data, part);
		require(bytes != NULL);
		c->has_ended = c->watch.request.data(&c->watch, bytes, part);
		free(bytes);
		data += part;
		size -= part;
		if (seed & 0x10000 && c->edits.first)
			c->edits.next.expired(c->edits.next.arg);
	}
	c->watch.request.easy = NULL;
	c->watch.request.done(&c->watch, 200, "");
	for (int i = 0; i < 3 && running->is_set; i++) {
		running->is_set = false;
		now_ms += 1000;
		running->expired(running->arg);
	}
	podwatch_close(&c->watch);
	edits_close(&c->edits);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct case_ once, parts;
	struct podevent event;

	if (size < 2)
		return 0;
	/* The kubelet writes the same events in another way. */
	podproto_read(&event, data, size);
	require(event.type == PODEVENT_OTHER ||
		event.type == PODEVENT_UNREADABLE ||
		podevent_has_names(&event));
	podevent_free(&event);
	talk(&once, data + 1, size - 1, 0);
	talk(&parts, data + 1, size - 1, 1U + data[0]);
	require(once.seen == parts.seen && once.count == parts.count);
	require(once.has_ended == parts.has_ended);
	return 0;
}
