/* SPDX-License-Identifier: BSD-2-Clause */
#include "reporter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../src/util/escape.h"
#include "../common/json.h"
#include "../common/text.h"
#include "podevent.h"

#define TIME_MAX_MS 10000L
#define NAME        "natra-agent"

static void add_object(cJSON *event, const struct edit *edit)
{
	cJSON *o = cJSON_AddObjectToObject(event, "involvedObject");

	cJSON_AddStringToObject(o, "apiVersion", "v1");
	cJSON_AddStringToObject(o, "kind", "Pod");
	cJSON_AddStringToObject(o, "namespace", edit->namespace);
	cJSON_AddStringToObject(o, "name", edit->name);
	cJSON_AddStringToObject(o, "uid", edit->uid);
}

static void add_time(cJSON *event)
{
	time_t now = time(NULL);
	struct tm utc;
	char text[32];

	(void)gmtime_r(&now, &utc);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	cJSON_AddStringToObject(event, "firstTimestamp", text);
	cJSON_AddStringToObject(event, "lastTimestamp", text);
	cJSON_AddNumberToObject(event, "count", 1);
}

/* kubectl writes a message to a terminal as it is: values in it are a tenant's. */
static void add_message(cJSON *event, const char *message)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	for (; *message; message++)
		(void)fputs(escape_byte(*message).text, out);
	if (fclose(out) == 0)
		cJSON_AddStringToObject(event, "message", text);
	free(text);
}

static char *make_body(const struct reporter *r, const struct edit *edit,
		       const char *reason, const char *message)
{
	cleanup_json cJSON *event = cJSON_CreateObject();
	cJSON *meta, *source;

	cJSON_AddStringToObject(event, "apiVersion", "v1");
	cJSON_AddStringToObject(event, "kind", "Event");
	meta = cJSON_AddObjectToObject(event, "metadata");
	cJSON_AddStringToObject(meta, "generateName", NAME "-");
	cJSON_AddStringToObject(meta, "namespace", edit->namespace);
	add_object(event, edit);
	cJSON_AddStringToObject(event, "type", "Warning");
	cJSON_AddStringToObject(event, "reason", reason);
	add_message(event, message);
	source = cJSON_AddObjectToObject(event, "source");
	cJSON_AddStringToObject(source, "component", NAME);
	cJSON_AddStringToObject(source, "host", r->node);
	cJSON_AddStringToObject(event, "reportingComponent", NAME);
	cJSON_AddStringToObject(event, "reportingInstance", r->node);
	add_time(event);
	return cJSON_PrintUnformatted(event);
}

static void event_free(struct reporter_event *event)
{
	free(event->space);
	free(event->path);
	free(event->body);
	*event = (struct reporter_event){0};
}

static struct reporter_event take(struct reporter *r, size_t i)
{
	struct reporter_event event = r->queue[i];

	r->len--;
	memmove(&r->queue[i], &r->queue[i + 1],
		(r->len - i) * sizeof(r->queue[0]));
	return event;
}

static size_t count_of(const struct reporter *r, const char *space)
{
	size_t count = 0;

	for (size_t i = 0; i < r->len; i++)
		count += strcmp(r->queue[i].space, space) == 0;
	return count;
}

/* Drops the oldest Event of the namespace that has the most. */
static void drop_one(struct reporter *r)
{
	struct reporter_event event;
	size_t most = 0, oldest = 0;

	for (size_t i = 0; i < r->len; i++) {
		size_t count = count_of(r, r->queue[i].space);

		if (count > most) {
			most = count;
			oldest = i;
		}
	}
	event = take(r, oldest);
	if (!r->is_full)
		log_write(r->log, NATRA_LOG_WARN,
			  "Events are lost, since %d wait; the first is of"
			  " namespace %s",
			  REPORTER_QUEUE_MAX, event.space);
	r->is_full = true;
	r->health->lost_events++;
	event_free(&event);
}

/* Puts an Event at a place in the queue, and takes it over. */
static void put(struct reporter *r, size_t i,
		const struct reporter_event *event)
{
	if (r->len == REPORTER_QUEUE_MAX)
		drop_one(r);
	if (i > r->len)
		i = r->len;
	memmove(&r->queue[i + 1], &r->queue[i],
		(r->len - i) * sizeof(r->queue[0]));
	r->queue[i] = *event;
	r->len++;
}

/* All Events of a namespace wait together. */
static void set_wait(struct reporter *r, const char *space, uint64_t due_ms,
		     struct backoff backoff)
{
	for (size_t i = 0; i < r->len; i++) {
		if (strcmp(r->queue[i].space, space) != 0)
			continue;
		r->queue[i].due_ms = due_ms;
		r->queue[i].backoff = backoff;
	}
}

static void wait_for_next(struct reporter *r)
{
	const uint64_t now_ms = clock_ms();
	uint64_t due_ms = UINT64_MAX;

	for (size_t i = 0; i < r->len; i++) {
		if (r->queue[i].due_ms < due_ms)
			due_ms = r->queue[i].due_ms;
	}
	if (r->len)
		timer_set(&r->soon, due_ms > now_ms ? due_ms - now_ms : 0);
}

/* Says once what is wrong with a namespace's Events while it lasts, and lets them wait. */
static void put_off(struct reporter *r, const char *why)
{
	struct reporter_event *event = &r->sending;

	if (!event->backoff.bound_ms)
		log_write(r->log, NATRA_LOG_WARN,
			  "Events wait: namespace %s: %s", event->space, why);
	event->due_ms = clock_ms() + backoff_next_ms(&event->backoff, 0);
	set_wait(r, event->space, event->due_ms, event->backoff);
	put(r, 0, event);
	*event = (struct reporter_event){0};
	wait_for_next(r);
}

/* Sends the first Event whose namespace does not wait. */
static void send_next(void *arg)
{
	struct reporter *r = arg;
	const uint64_t now_ms = clock_ms();
	size_t i = 0;
	int error;

	if (r->request.easy)
		return;
	while (i < r->len && r->queue[i].due_ms > now_ms)
		i++;
	if (i == r->len) {
		wait_for_next(r);
		return;
	}
	r->sending = take(r, i);
	r->is_full &= r->len >= REPORTER_QUEUE_MAX / 2;
	error = api_start(r->api, &r->request, r->sending.path, r->sending.body,
			  TIME_MAX_MS);
	if (error < 0)
		put_off(r, strerror(-error));
}

/* A server that is away or busy, or a token that has expired, gets the Event again later. What a
 * quota or a webhook of one namespace refuses does not hold up those of others. */
static void done(void *arg, long status, const char *error)
{
	struct reporter *r = arg;
	char why[64];

	(void)snprintf(why, sizeof(why), "the API server answers %ld", status);
	if (!status || status == 401 || status == 429 || status >= 500) {
		put_off(r, status ? why : error);
		return;
	}
	if (status != 201)
		log_write(r->log, NATRA_LOG_WARN, "an Event is not taken: %s",
			  why);
	set_wait(r, r->sending.space, 0, (struct backoff){0});
	event_free(&r->sending);
	send_next(r);
}

int reporter_open(struct reporter *r)
{
	r->request.done = done;
	r->request.arg = r;
	return timer_open(&r->soon, r->api->loop, send_next, r);
}

void reporter_add(struct reporter *r, const struct edit *edit,
		  const char *reason, const char *message)
{
	struct reporter_event event = {0};

	/* A namespace from the API server is a DNS label; this goes into a
	 * URL. */
	if (edit->namespace[strspn(edit->namespace,
				   "abcdefghijklmnopqrstuvwxyz0123456789-")] ||
	    !tenants_may(&r->sent, edit->uid, edit->namespace))
		return;
	tenants_take(&r->sent, edit->uid, edit->namespace);
	for (size_t i = 0; i < r->len; i++) {
		if (strcmp(r->queue[i].space, edit->namespace) == 0) {
			event.due_ms = r->queue[i].due_ms;
			event.backoff = r->queue[i].backoff;
		}
	}
	event.space = text_copy(edit->namespace);
	event.path =
		text_format("/api/v1/namespaces/%s/events", edit->namespace);
	event.body = make_body(r, edit, reason, message);
	put(r, r->len, &event);
	/* The caller may be inside of libcurl, which starts no request there. */
	wait_for_next(r);
}

void reporter_close(struct reporter *r)
{
	if (!r->soon.expired)
		return;
	timer_close(&r->soon, r->api->loop);
	api_cancel(r->api, &r->request);
	event_free(&r->sending);
	while (r->len)
		event_free(&r->queue[--r->len]);
}
