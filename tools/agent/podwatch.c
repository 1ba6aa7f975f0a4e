/* SPDX-License-Identifier: BSD-2-Clause */
#include "podwatch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "../common/text.h"

/* The server ends a watch after a time from the shortest to the longest, by chance: the watches
 * of all nodes began together when the server was started. The token is read again then. */
#define WATCH_MIN_S    200
#define WATCH_MAX_S    400
#define WATCH_MAX_MS   440000L
#define ANSWER_MAX_MS  15000
#define LOOK_MS        500
/* A watch that has lasted this long does not count as failed. One that has not brought all pods has
 * to be asked for them again, which is done no more often than after failures. */
#define LIFE_MS        5000
#define LIFE_PART_MS   BACKOFF_MAX_MS
/* A node has fewer pods: a server that sends more than this speaks of something else. */
#define UNREADABLE_MAX 1000

static void begin(struct podwatch *w);

static uint32_t random_number(void)
{
	uint32_t number = 0;

	/* An error does not matter: then all nodes only connect at the same time. */
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) < 0)
		return 0;
	return number;
}

static void try_again(struct podwatch *w, uint64_t wait_ms)
{
	lines_reset(&w->lines);
	timer_set(&w->timer, wait_ms);
}

static void failed(struct podwatch *w, const char *why)
{
	uint64_t wait_ms = backoff_next_ms(&w->backoff, random_number());

	health_fail(w->feed->health, PART_API, NATRA_LOG_WARN,
		    "the API server: %s; edits of annotations wait", why);
	try_again(w, wait_ms);
}

/* Ends the watch from inside of it. */
static int refuse_line(struct podwatch *w, const char *why)
{
	(void)snprintf(w->why, sizeof(w->why), "%s", why);
	return 1;
}

static bool take_version(struct podwatch *w, const char *version)
{
	/* The version becomes a part of a URL. */
	if (!version[0] || strlen(version) >= sizeof(w->version) ||
	    version[strspn(version, "0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ._-")])
		return false;
	memcpy(w->version, version, strlen(version) + 1);
	return true;
}

/* Goes on behind an event that cannot be read. */
static int skip(struct podwatch *w, const struct podevent *event,
		const char *why)
{
	podfeed_unreadable(w->feed, event, why);
	/* A line that is torn, perhaps by a proxy, may come whole the next time. */
	if (event->type == PODEVENT_GARBAGE && !w->lines.is_cut &&
	    !w->is_torn) {
		w->is_torn = true;
		timer_set(&w->resync,
			  backoff_next_ms(&w->resyncs, random_number()));
	}
	return ++w->unreadable_count > UNREADABLE_MAX
		       ? refuse_line(w, "the answer is no watch of pods")
		       : 0;
}

static int take(struct podwatch *w, const struct podevent *event)
{
	const char *wrong;

	switch (event->type) {
	case PODEVENT_EXPIRED:
		w->version[0] = '\0';
		return refuse_line(w, "the version is too old");
	case PODEVENT_ERROR:
		if (!w->version[0])
			w->is_plain = !w->is_plain;
		return refuse_line(w, event->message[0] ? event->message
							: "an error event");
	case PODEVENT_GARBAGE:
		return skip(w, event,
			    w->lines.is_cut ? "it is over 16 MiB"
					    : "it is not JSON");
	case PODEVENT_UNREADABLE:
		return skip(w, event, "it is not as Kubernetes writes it");
	case PODEVENT_PRESENT:
	case PODEVENT_GONE:
	case PODEVENT_BOOKMARK:
	case PODEVENT_OTHER:
		break;
	}
	if (!take_version(w, event->version))
		return skip(w, event, "its resourceVersion is invalid");
	w->is_whole |= event->type == PODEVENT_BOOKMARK || event->is_change;
	wrong = podfeed_event(w->feed, event);
	if (!wrong)
		return 0;
	/* The next watch has to begin with all pods, since there was no room for this one. */
	w->version[0] = '\0';
	return refuse_line(w, wrong);
}

static int line(void *arg, char *text)
{
	struct podevent event;
	int r;

	podevent_read(&event, text);
	r = take(arg, &event);
	podevent_free(&event);
	return r;
}

static int data(void *arg, const char *bytes, size_t len)
{
	struct podwatch *w = arg;

	w->heard_ms = clock_ms();
	return lines_add(&w->lines, bytes, len, line, w);
}

static void done(void *arg, long status, const char *error)
{
	struct podwatch *w = arg;
	const uint64_t lived_ms = clock_ms() - w->since_ms;
	char why[64];

	/* A proxy may cut what is quiet. It is no failure, but all pods come again. */
	if (status == 200 && !w->why[0] && !w->is_whole &&
	    lived_ms >= LIFE_MS && lived_ms < LIFE_PART_MS) {
		try_again(w, backoff_next_ms(&w->backoff, random_number()));
		return;
	}
	if (status == 200 && lived_ms >= LIFE_MS) {
		backoff_reset(&w->backoff);
		if (!w->unreadable_count)
			backoff_reset(&w->resyncs);
		/* The watch's time is over, or the server is restarted: the other
		 * nodes' watches have ended, too. */
		if (!w->why[0]) {
			try_again(w, random_number() % 1000);
			return;
		}
	}
	/* 504: the server is behind this version, perhaps since it was restored from a backup. */
	if (status == 410 || status == 504)
		w->version[0] = '\0';
	if (w->why[0]) {
		failed(w, w->why);
	} else if (error[0] && status <= 200) {
		failed(w, error);
	} else if (w->unreadable_count) {
		failed(w, "the answer is not an event");
	} else {
		(void)snprintf(why, sizeof(why), "answers %ld", status);
		failed(w, status == 200 ? "ends the watch too early" : why);
	}
}

static void begin_anew(void *arg)
{
	struct podwatch *w = arg;

	if (!w->request.easy)
		return;
	api_cancel(w->api, &w->request);
	lines_reset(&w->lines);
	begin(w);
}

/* A server that hangs, or a connection that a firewall has forgotten, sends nothing
 * and is no error. The server has a bookmark for each watch about once a minute, so
 * after a longer silence the watch begins anew, on another connection: if that is not
 * answered either, it has failed. A watch without bookmarks is silent while no pod
 * changes, so that one only ends when its time is over. */
static void look_for_silence(struct podwatch *w)
{
	uint64_t silent_ms = clock_ms() - w->heard_ms;

	if (w->is_plain)
		return;
	if (silent_ms < w->silence_ms) {
		timer_set(&w->timer, w->silence_ms - silent_ms);
		return;
	}
	log_write(w->log, NATRA_LOG_INFO,
		  "the API server: silent for %" PRIu64
		  " s; the watch begins anew",
		  silent_ms / 1000);
	/* It has nothing for this version, as one that is behind it. */
	if (w->heard_ms == w->since_ms)
		w->version[0] = '\0';
	begin_anew(w);
}

/* An answer without a pod has no data, so this looks for its status. */
static void look_for_answer(struct podwatch *w)
{
	if (api_status(&w->request) == 200) {
		podfeed_ready(w->feed);
		look_for_silence(w);
		return;
	}
	if (clock_ms() - w->since_ms < ANSWER_MAX_MS) {
		timer_set(&w->timer, LOOK_MS);
		return;
	}
	api_cancel(w->api, &w->request);
	failed(w, "no answer");
}

static void time_over(void *arg)
{
	struct podwatch *w = arg;

	if (w->request.easy)
		look_for_answer(w);
	else
		begin(w);
}

/* Pods that have ended stay as objects until the cluster collects thousands of them, and a tenant can
 * bind so many to one node. */
static char *make_path(const struct podwatch *w)
{
	const uint32_t seconds =
		WATCH_MIN_S + random_number() % (WATCH_MAX_S - WATCH_MIN_S + 1);

	return text_format("/api/v1/pods?watch=true&allowWatchBookmarks=%s"
			   "&timeoutSeconds=%" PRIu32 "&resourceVersion=%s"
			   "&fieldSelector=spec.nodeName%%3D%s"
			   "%%2Cstatus.phase%%21%%3DSucceeded"
			   "%%2Cstatus.phase%%21%%3DFailed",
			   w->is_plain ? "false" : "true", seconds,
			   w->version[0] ? w->version : "0", w->node);
}

static void begin(struct podwatch *w)
{
	cleanup_text char *path = NULL;
	int r;

	if (w->is_torn || !w->is_whole)
		w->version[0] = '\0';
	w->is_whole = w->version[0];
	path = make_path(w);
	w->why[0] = '\0';
	w->unreadable_count = 0;
	w->is_torn = false;
	timer_stop(&w->resync);
	w->since_ms = w->heard_ms = clock_ms();
	r = api_start(w->api, &w->request, path, NULL, WATCH_MAX_MS);
	if (r < 0) {
		cleanup_text char *why = text_format(
			"the token cannot be read: %s", strerror(-r));

		failed(w, why);
		return;
	}
	timer_set(&w->timer, LOOK_MS);
}

int podwatch_open(struct podwatch *w)
{
	int r = timer_open(&w->timer, w->api->loop, time_over, w);

	if (r == 0)
		r = timer_open(&w->resync, w->api->loop, begin_anew, w);
	if (r < 0)
		return r;
	w->request.data = data;
	w->request.done = done;
	w->request.arg = w;
	health_expect(w->feed->health, PART_API);
	return 0;
}

void podwatch_begin(struct podwatch *w)
{
	timer_set(&w->timer, 0);
}

void podwatch_again(struct podwatch *w)
{
	w->version[0] = '\0';
	begin_anew(w);
}

void podwatch_close(struct podwatch *w)
{
	if (!w->api || !w->resync.expired)
		return;
	api_cancel(w->api, &w->request);
	timer_close(&w->timer, w->api->loop);
	timer_close(&w->resync, w->api->loop);
	lines_reset(&w->lines);
}
