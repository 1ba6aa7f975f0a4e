/* SPDX-License-Identifier: BSD-2-Clause */
#include "reporter.h"

#include <string.h>
#include <time.h>

#include "../common/json.h"
#include "../common/text.h"
#include "podevent.h"

#define TIME_MAX_MS 10000L
#define NAME        "natra-agent"
#define REASON      "BandwidthNotChanged"

/* A node, a namespace and a pod send at most this many Events in a minute, so that no tenant
 * uses up what others need. */
#define PERIOD_MS     60000
#define NAMESPACE_MAX 16
#define POD_MAX       8
static const struct budget bound = {.times = 60, .period_ms = PERIOD_MS};

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
	cJSON_AddStringToObject(event, "message", message);
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

static void send_first(struct reporter *r)
{
	int error;

	if (!r->len || r->request.easy)
		return;
	error = api_start(r->api, &r->request, r->queue[r->first].path,
			  r->queue[r->first].body, TIME_MAX_MS);
	remove_first(r);
	if (error < 0)
		log_write(r->log, NATRA_LOG_WARN, "an Event cannot be sent: %s",
			  strerror(-error));
}

static void done(void *arg, long status, const char *error)
{
	struct reporter *r = arg;

	if (status != 201)
		log_write(r->log, NATRA_LOG_WARN,
			  "the API server has not taken an Event: %ld %s",
			  status, error);
	send_first(r);
}

void reporter_open(struct reporter *r)
{
	r->budget = bound;
	r->request.done = done;
	r->request.arg = r;
}

/* Returns the share that has this name, which is new if there was none. */
static struct reporter_share *share_of(struct reporter_share *shares,
				       const char *name, uint64_t now_ms)
{
	const uint64_t key = podevent_hash(name);
	struct reporter_share *share = &shares[key % REPORTER_SHARES];

	if (share->key != key || now_ms - share->since_ms >= PERIOD_MS)
		*share =
			(struct reporter_share){.key = key, .since_ms = now_ms};
	return share;
}

/* Returns whether the Event may be sent now, and counts it. */
static bool take_budget(struct reporter *r, const struct edit *edit)
{
	const uint64_t now_ms = clock_ms();
	struct reporter_share *pod = share_of(r->pods, edit->uid, now_ms);
	struct reporter_share *space =
		share_of(r->namespaces, edit->namespace, now_ms);

	if (pod->count == POD_MAX || space->count == NAMESPACE_MAX ||
	    budget_wait_ms(&r->budget, now_ms))
		return false;
	pod->count++;
	space->count++;
	budget_take(&r->budget, now_ms);
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
	send_first(r);
}

void reporter_close(struct reporter *r)
{
	if (!r->api)
		return;
	api_cancel(r->api, &r->request);
	while (r->len)
		remove_first(r);
}
