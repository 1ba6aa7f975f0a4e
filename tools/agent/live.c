/* SPDX-License-Identifier: BSD-2-Clause */
#include "live.h"

#include "../common/text.h"
#include "edits.h"
#include "kubelet.h"
#include "podwatch.h"
#include "reporter.h"

struct live {
	struct api_options api_options;
	struct api api;
	struct edits_queue edits;
	struct reporter reporter;
	struct podfeed feed;
	bool has_begun;
	/* One of these two watches pods. */
	struct podwatch watch;
	struct kubelet kubelet;
	char *socket; /* the kubelet's; NULL: the API server is watched */
};

static bool seen(void *arg, const struct podevent *event)
{
	struct live *live = arg;

	if (event->type == PODEVENT_PRESENT)
		return edits_add(&live->edits, event);
	edits_remove(&live->edits, event);
	return true;
}

static void refused(void *arg, const struct edit *edit,
		    const struct edit_result *result)
{
	struct live *live = arg;

	live->feed.health->refused_edits += !result->is_over;
	reporter_add(&live->reporter, edit,
		     result->is_over ? "BandwidthOverMaximum"
				     : "BandwidthNotChanged",
		     result->message);
}

static void followed(void *arg)
{
	struct live *live = arg;

	live->feed.health->followed_edits++;
}

static void unreadable(void *arg, const struct podevent *event, const char *why)
{
	struct live *live = arg;
	cleanup_text char *message =
		text_format("natra-agent cannot read the pod's event: %s", why);

	reporter_add(&live->reporter,
		     &(struct edit){.uid = (char *)event->uid,
				    .namespace = (char *)event->namespace,
				    .name = (char *)event->name},
		     "BandwidthNotChanged", message);
}

static void reread(void *arg)
{
	struct live *live = arg;

	if (live->socket)
		kubelet_again(&live->kubelet);
	else
		podwatch_again(&live->watch);
}

static int open_parts(struct live *live, struct workers *workers)
{
	int r = api_open(&live->api, workers->loop, &live->api_options);

	if (r == 0)
		r = edits_open(&live->edits, workers);
	if (r == 0)
		r = reporter_open(&live->reporter);
	if (r < 0)
		return r;
	return live->socket ? kubelet_open(&live->kubelet)
			    : podwatch_open(&live->watch);
}

int live_open(struct live **ret, const struct live_options *options,
	      const struct jobs *jobs, struct health *health,
	      struct workers *workers)
{
	struct live *live = memory_new(sizeof(*live));
	int r;

	live->api_options = (struct api_options){
		options->url, options->token_file, options->ca_file};
	live->edits.jobs = jobs;
	live->edits.refused = refused;
	live->edits.followed = followed;
	live->edits.reread = reread;
	live->edits.arg = live;
	live->reporter.api = &live->api;
	live->reporter.log = jobs->log;
	live->reporter.health = health;
	live->reporter.node = options->node;
	live->feed = (struct podfeed){health, seen, unreadable, live, 0};
	live->watch.api = &live->api;
	live->watch.feed = &live->feed;
	live->watch.log = jobs->log;
	live->watch.node = options->node;
	live->watch.silence_ms = options->silence_ms;
	live->kubelet = (struct kubelet){
		.loop = workers->loop,
		.feed = &live->feed,
	};
	if (options->kubelet_socket[0])
		live->kubelet.path = live->socket =
			text_format("%s%s", jobs->root ? jobs->root : "",
				    options->kubelet_socket);
	r = open_parts(live, workers);
	if (r < 0)
		live_close(live);
	else
		*ret = live;
	return r;
}

void live_begin(struct live *live)
{
	if (!live || live->has_begun)
		return;
	live->has_begun = true;
	if (live->socket)
		kubelet_begin(&live->kubelet);
	else
		podwatch_begin(&live->watch);
}

void live_again(struct live *live)
{
	if (!live)
		return;
	edits_forget(&live->edits);
	reread(live);
}

void live_close(struct live *live)
{
	if (!live)
		return;
	podwatch_close(&live->watch);
	kubelet_close(&live->kubelet);
	reporter_close(&live->reporter);
	edits_close(&live->edits);
	api_close(&live->api);
	free(live->socket);
	free(live);
}
