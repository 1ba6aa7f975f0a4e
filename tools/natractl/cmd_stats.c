/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "../common/memory.h"
#include "cli.h"
#include "find.h"
#include "json.h"
#include "output.h"
#include "stats.h"

/* Copies the counters of the classes, less those of before. The caller frees them. */
static struct class_sample *classes_between(const struct sample *before,
					    const struct sample *now)
{
	struct class_sample *list =
		memory_new(now->classes_len * sizeof(*list));

	for (size_t i = 0; i < now->classes_len; i++) {
		const struct natra_stats *old =
			sample_class(before, now->classes[i].name);

		list[i] = now->classes[i];
		if (old)
			list[i].stats = stats_between(old, &list[i].stats);
	}
	return list;
}

/* Returns the width of the longest id, or name of a class behind a slash. */
static int width_of(const struct sample_list *list)
{
	int longest = 2;

	for (size_t i = 0; i < list->len; i++) {
		const struct sample *sample = &list->items[i];
		int width = text_width(sample->id);

		longest = width > longest ? width : longest;
		for (size_t j = 0; j < sample->classes_len; j++) {
			width = 1 + text_width(sample->classes[j].name);
			longest = width > longest ? width : longest;
		}
	}
	return longest;
}

static void print_interval(const struct cli *cli,
			   const struct sample_list *before,
			   const struct sample_list *now)
{
	const int id_width = width_of(now);

	if (!wants_json(cli))
		stats_print_rates_header(id_width);
	for (size_t i = 0; i < now->len; i++) {
		struct sample delta = now->items[i];
		const struct sample *old = sample_list_find(before, delta.id);
		uint64_t interval_ns;

		if (!old)
			continue; /* it is new: its first interval has no start */
		interval_ns = delta.taken_ns - old->taken_ns;
		delta.stats = stats_between(&old->stats, &delta.stats);
		delta.classes = classes_between(old, &now->items[i]);
		if (!delta.classes)
			delta.classes_len = 0;
		if (wants_json(cli)) {
			cJSON *json = stats_json(&delta);

			json_add_u64(json, "interval_ns", interval_ns);
			json_print_line(json);
		} else {
			stats_print_rates(&delta, interval_ns, id_width);
		}
		free(delta.classes);
	}
	fflush(stdout);
}

/* Prints the rates of each interval. SIGINT and SIGTERM are blocked except
 * while it waits, so that an interval is printed as a whole or not at all. */
static int watch(const struct cli *cli, struct sample_list *before,
		 uint32_t seconds)
{
	const struct timespec interval = {.tv_sec = seconds};
	sigset_t stop;

	sigemptyset(&stop);
	sigaddset(&stop, SIGINT);
	sigaddset(&stop, SIGTERM);
	sigprocmask(SIG_BLOCK, &stop, NULL);
	while (!ferror(stdout)) {
		struct sample_list now;
		int r;

		if (sigtimedwait(&stop, NULL, &interval) >= 0)
			return EXIT_SUCCESS;
		if (errno != EAGAIN)
			continue; /* the process was stopped and continued */
		r = sample_list_read(cli, &now);
		if (r < 0)
			return failure(cli, r);
		print_interval(cli, before, &now);
		sample_list_free(before);
		*before = now;
	}
	return EXIT_FAILURE;
}

static void print_once(const struct cli *cli, const struct sample_list *list)
{
	cJSON *json;

	if (!wants_json(cli)) {
		for (size_t i = 0; i < list->len; i++)
			stats_print(&list->items[i]);
		return;
	}
	if (cli->opts.arg) {
		json_print(stats_json(&list->items[0]));
		return;
	}
	json = cJSON_CreateArray();
	for (size_t i = 0; i < list->len; i++)
		cJSON_AddItemToArray(json, stats_json(&list->items[i]));
	json_print(json);
}

int cmd_stats(struct cli *cli)
{
	struct sample_list list = {0};
	uint32_t seconds = 0;
	int r;

	if (cli->opts.arg) {
		r = find_argument(cli);
		if (r)
			return r;
	}
	if (cli->opts.value[OPT_WATCH]) {
		r = opts_number(&cli->opts, OPT_WATCH, 86400, &seconds);
		if (r)
			return r;
	}
	r = sample_list_read(cli, &list);
	if (r < 0)
		return failure(cli, r);
	r = list.exit_code;
	if (seconds > 0)
		r = watch(cli, &list, seconds);
	else
		print_once(cli, &list);
	sample_list_free(&list);
	return r;
}
