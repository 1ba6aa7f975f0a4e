/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "../../src/util/clock.h"
#include "cli.h"
#include "events.h"
#include "find.h"
#include "../common/flows.h"
#include "json.h"
#include "output.h"

struct events {
	const struct cli *cli;
	struct natra_events *reader;
	uint64_t from_ns; /* older events are not shown */
	uint64_t
		lost; /* before events that were not shown since the last one */
};

/* Returns a time of CLOCK_MONOTONIC as a date, by what the node's clock says now. */
static struct unit_text date_text(uint64_t monotonic_ns)
{
	const uint64_t ns = clock_ns(CLOCK_REALTIME) -
			    clock_ns(CLOCK_MONOTONIC) + monotonic_ns;
	const time_t seconds = (time_t)(ns / NS_PER_S);
	struct unit_text out;
	struct tm date;
	size_t len;

	gmtime_r(&seconds, &date);
	len = strftime(out.text, sizeof(out.text), "%Y-%m-%dT%H:%M:%S", &date);
	snprintf(out.text + len, sizeof(out.text) - len, ".%03uZ",
		 (unsigned int)(ns % NS_PER_S / 1000000));
	return out;
}

/* Returns the pod's direction, or "-" if the attachment is gone. */
static const char *direction_of(const struct natra_event *event)
{
	if (event->direction >= NATRA_DIRECTION_MAX)
		return "-";
	return event->backstop ? "backstop"
			       : natra_direction_name(event->direction);
}

static const char *reason_of(const struct natra_event *event)
{
	const char *name = natra_event_reason_name(event->reason);

	return name ? name : "unknown";
}

/* An event of small flows together has their factor in place of a flow. */
static void print_event(const struct natra_event *event)
{
	const struct natra_flow *flow = &event->flow;
	const bool is_over = event->reason == NATRA_EVENT_OVER_LIMIT;
	const char *pod = event->label[0] ? event->label : event->id;
	const char *class = event->class_name[0] ? event->class_name : "-";
	struct unit_text factor;

	(void)snprintf(factor.text, sizeof(factor.text), "%.1f x the %s",
		       event->over_limit_percent / 100.0,
		       event->group[0] ? "group's limit" : "limit");
	printf("%s  %-9s  %-15s  %-7s  %-24s  %-24s  %-8s  ",
	       date_text(event->time_ns).text, direction_of(event),
	       reason_of(event), is_over ? "-" : protocol_text(flow).text,
	       is_over ? factor.text
		       : endpoint_text(flow, flow->saddr, flow->sport).text,
	       is_over ? "-"
		       : endpoint_text(flow, flow->daddr, flow->dport).text,
	       class);
	print_text(stdout, pod[0] ? pod : "-", 0);
	putchar('\n');
}

cJSON *event_json(const struct natra_event *event)
{
	const struct natra_flow *flow = &event->flow;
	cJSON *json = cJSON_CreateObject();

	json_add_text(json, "time", date_text(event->time_ns).text);
	json_add_u64(json, "time_ns", event->time_ns);
	json_add_text(json, "id", event->id);
	json_add_text(json, "label", event->label);
	json_add_text(json, "direction", direction_of(event));
	json_add_text(json, "class", event->class_name);
	json_add_text(json, "reason", reason_of(event));
	flow_add_json(json, flow);
	json_add_u64(json, "over_limit_percent", event->over_limit_percent);
	json_add_text(json, "group", event->group);
	json_add_u64(json, "lost", event->lost);
	return json;
}

static bool is_asked_for(const struct events *events,
			 const struct natra_event *event)
{
	const char *pod = events->cli->opts.arg;

	if (event->time_ns < events->from_ns)
		return false;
	return !pod || is_named(event->id, event->label, pod);
}

/* Shows all events that are there now. */
static int show_new(struct events *events)
{
	struct natra_event event = NATRA_INIT(event);
	int r;

	while ((r = natra_events_read(events->reader, &event)) == 1) {
		if (event.lost)
			fprintf(stderr,
				"natractl: %" PRIu64
				" events were overwritten before they were read\n",
				event.lost);
		events->lost += event.lost;
		if (!is_asked_for(events, &event))
			continue;
		event.lost = events->lost;
		events->lost = 0;
		if (wants_json(events->cli))
			json_print_line(event_json(&event));
		else
			print_event(&event);
	}
	fflush(stdout);
	return r;
}

/* Shows events until SIGINT or SIGTERM, which are blocked so that each line is
 * printed as a whole. */
static int follow(struct events *events)
{
	struct pollfd fds[] = {
		{.fd = natra_events_fd(events->reader), .events = POLLIN},
		{.fd = -1, .events = POLLIN},
	};
	sigset_t stop;
	int r = 0;

	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	fds[1].fd = signalfd(-1, &stop, SFD_CLOEXEC);
	if (fds[1].fd < 0)
		return -errno;
	while (r == 0 && !ferror(stdout) && !fds[1].revents) {
		if (poll(fds, 2, -1) > 0 && fds[0].revents)
			r = show_new(events);
	}
	close(fds[1].fd);
	return r;
}

static int is_of_pod(void *arg, const struct natra_info *info,
		     const struct natra_stats *stats)
{
	const char *pod = arg;

	(void)stats;
	return is_named(info->id, info->label, pod);
}

static int check_pod(const struct cli *cli)
{
	const char *pod = cli->opts.arg;
	int r = pod ? natra_foreach_stats(cli->n, is_of_pod, (void *)pod) : 1;

	if (r < 0)
		return failure(cli, r);
	if (r)
		return 0;
	/* It may be attached a moment later, so this is no wrong usage. */
	(void)usage_error("ID|POD", pod,
			  "is neither the ID nor the label of an attachment");
	return EXIT_FAILURE;
}

static int parse_since(const struct cli *cli, uint64_t *ret_from_ns)
{
	const char *text = cli->opts.value[OPT_SINCE];
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t ns;

	if (!text)
		return 0;
	if (natra_parse_time(text, &ns) < 0)
		return usage_error(
			opts_name(OPT_SINCE), text,
			"is not a time up to an hour, such as 90s or 500ms");
	*ret_from_ns = now_ns > ns ? now_ns - ns : 0;
	return 0;
}

int cmd_events(struct cli *cli)
{
	struct events events = {.cli = cli};
	int r = parse_since(cli, &events.from_ns);

	if (!r)
		r = check_pod(cli);
	if (r)
		return r;
	r = natra_events_open(cli->n, &events.reader);
	if (r < 0)
		return failure(cli, r);
	if (!wants_json(cli))
		printf("%-24s  %-9s  %-15s  %-7s  %-24s  %-24s  %-8s  %s\n",
		       "TIME", "DIRECTION", "REASON", "PROTO", "SOURCE",
		       "DESTINATION", "CLASS", "POD");
	r = show_new(&events);
	if (r == 0 && cli->opts.value[OPT_FOLLOW])
		r = follow(&events);
	natra_events_close(events.reader);
	return r < 0 ? failure(cli, r) : EXIT_SUCCESS;
}
