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
#define REASON      "BandwidthNotChanged"

/* A pod, a namespace and a node send at most this many Events in a minute. A namespace that has
 * sent none yet may go past the node's number, so that no tenant uses up what others need,
 * however many namespaces he has. */
#define PERIOD_MS     60000
#define POD_MAX       8
#define NAMESPACE_MAX 16
#define NODE_MAX      60

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
		       const char *message)
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
	cJSON_AddStringToObject(event, "reason", REASON);
	add_message(event, message);
	source = cJSON_AddObjectToObject(event, "source");
	cJSON_AddStringToObject(source, "component", NAME);
	cJSON_AddStringToObject(source, "host", r->node);
	cJSON_AddStringToObject(event, "reportingComponent", NAME);
	cJSON_AddStringToObject(event, "reportingInstance", r->node);
	add_time(event);
	return cJSON_PrintUnformatted(event);
}

static void remove_first(struct reporter *r)
{
	free(r->queue[r->first].path);
	free(r->queue[r->first].body);
	r->first = (r->first + 1) % REPORTER_QUEUE_MAX;
	r->len--;
}

/* Says once what is wrong while it lasts, and waits. */
static void put_off(struct reporter *r, const char *why)
{
	if (!r->backoff.bound_ms)
		log_write(r->log, NATRA_LOG_WARN, "Events wait: %s", why);
	timer_set(&r->soon, backoff_next_ms(&r->backoff, 0));
}

static void send_first(void *arg)
{
	struct reporter *r = arg;
	int error;

	if (!r->len || r->request.easy)
		return;
	error = api_start(r->api, &r->request, r->queue[r->first].path,
			  r->queue[r->first].body, TIME_MAX_MS);
	if (error < 0)
		put_off(r, strerror(-error));
}

/* A server that is away or busy, or a token that has expired, gets the Event again later. */
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
	backoff_reset(&r->backoff);
	remove_first(r);
	send_first(r);
}

int reporter_open(struct reporter *r)
{
	r->request.done = done;
	r->request.arg = r;
	return timer_open(&r->soon, r->api->loop, send_first, r);
}

/* Returns whether the Event may be sent now, and notes it. */
static bool take_budget(struct reporter *r, const struct edit *edit)
{
	const uint64_t now_ms = clock_ms();
	const uint64_t pod = podevent_hash(edit->uid);
	const uint64_t space = podevent_hash(edit->namespace);
	size_t of_pod = 0, of_space = 0, of_node = 0;
	struct reporter_sent *oldest = &r->sent[0];

	for (size_t i = 0; i < REPORTER_SENT_MAX; i++) {
		struct reporter_sent *sent = &r->sent[i];

		if (sent->at_ms < oldest->at_ms)
			oldest = sent;
		if (!sent->at_ms || now_ms - sent->at_ms >= PERIOD_MS)
			continue;
		of_node++;
		of_pod += sent->pod == pod;
		of_space += sent->space == space;
	}
	if (of_pod >= POD_MAX || of_space >= NAMESPACE_MAX ||
	    (of_space && of_node >= NODE_MAX) || of_node == REPORTER_SENT_MAX)
		return false;
	*oldest = (struct reporter_sent){pod, space, now_ms};
	return true;
}

void reporter_add(struct reporter *r, const struct edit *edit,
		  const char *message)
{
	size_t last = (r->first + r->len) % REPORTER_QUEUE_MAX;

	/* A namespace from the API server is a DNS label; this goes into a
	 * URL. */
	if (edit->namespace[strspn(edit->namespace,
				   "abcdefghijklmnopqrstuvwxyz0123456789-")] ||
	    r->len == REPORTER_QUEUE_MAX || !take_budget(r, edit))
		return;
	r->queue[last].path =
		text_format("/api/v1/namespaces/%s/events", edit->namespace);
	r->queue[last].body = make_body(r, edit, message);
	r->len++;
	/* The caller may be inside of libcurl, which starts no request there. */
	if (!r->soon.is_set)
		timer_set(&r->soon, 0);
}

void reporter_close(struct reporter *r)
{
	if (!r->soon.expired)
		return;
	timer_close(&r->soon, r->api->loop);
	api_cancel(r->api, &r->request);
	while (r->len)
		remove_first(r);
}
