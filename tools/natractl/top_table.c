/* SPDX-License-Identifier: BSD-2-Clause */
/* `natractl top` as one table, and as JSON. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../common/flows.h"
#include "json.h"
#include "top.h"

struct unit_text top_rate_text(uint64_t bits_per_sec)
{
	static const char units[] = {0, 'k', 'M', 'G', 'T', 'P'};
	double value = (double)bits_per_sec;
	struct unit_text out;
	size_t i = 0;

	/* 999.5 would be printed as 1000. */
	while (i + 1 < sizeof(units) && value >= 999.5) {
		value /= 1000;
		i++;
	}
	snprintf(out.text, sizeof(out.text), "%.3g%.1s", value, &units[i]);
	return out;
}

struct unit_text top_limit_text(const struct top_row *row)
{
	if (row->reading.unshaped)
		return (struct unit_text){"none"};
	return top_rate_text(row->reading.limit_bits_per_sec);
}

static void print_row(const struct top *top, const struct top_row *row,
		      int name_width)
{
	const struct top_reading *reading = &row->reading;

	printf("%-*s  %-15s  %-9s  %6s  %7s  %6s  %4u%%  %6s  %6s  %7s  %5zu\n",
	       name_width, reading->name,
	       reading->ifname[0] ? reading->ifname : "-",
	       natra_direction_name(reading->of.direction),
	       top_limit_text(row).text, top_rate_text(top_offered(row)).text,
	       top_rate_text(row->rate.passed).text,
	       (unsigned int)top_percent(row),
	       top_rate_text(row->rate.held).text,
	       top_rate_text(row->rate.marked).text,
	       top_rate_text(row->rate.dropped).text,
	       top_count_flows(top, row));
}

static void print_table(const struct top *top)
{
	const struct top_model *model = &top->model;
	int width = 3;

	for (size_t i = 0; i < model->view_len; i++) {
		int length = (int)strlen(top_row_at(model, i)->reading.name);

		width = length > width ? length : width;
	}
	printf("%-*s  %-15s  %-9s  %6s  %7s  %6s  %5s  %6s  %6s  %7s  %5s\n",
	       width, "POD", "INTERFACE", "DIRECTION", "LIMIT", "OFFERED",
	       "PASSED", "CAP", "HELD", "MARKED", "DROPPED", "FLOWS");
	for (size_t i = 0; i < model->view_len; i++)
		print_row(top, top_row_at(model, i), width);
}

static cJSON *row_json(const struct top *top, const struct top_row *row)
{
	static const char *const kinds[] = {
		[TOP_POD] = "pod",
		[TOP_CLASS] = "class",
		[TOP_GROUP] = "group",
		[TOP_AUTOMATIC] = "automatic group",
	};
	const struct top_reading *reading = &row->reading;
	cJSON *o = cJSON_CreateObject();

	json_add_text(o, "kind", kinds[reading->of.kind]);
	json_add_text(o, "id", reading->of.id);
	json_add_text(o, "part", reading->of.part);
	json_add_text(o, "name", reading->name);
	json_add_text(o, "ifname", reading->ifname);
	json_add_text(o, "direction",
		      natra_direction_name(reading->of.direction));
	cJSON_AddBoolToObject(o, "unshaped", reading->unshaped);
	json_add_u64(o, "limit_bits_per_sec", reading->limit_bits_per_sec);
	json_add_u64(o, "offered_bits_per_sec", top_offered(row));
	json_add_u64(o, "passed_bits_per_sec", row->rate.passed);
	json_add_u64(o, "limit_percent", top_percent(row));
	json_add_u64(o, "held_bits_per_sec", row->rate.held);
	json_add_u64(o, "marked_bits_per_sec", row->rate.marked);
	json_add_u64(o, "dropped_bits_per_sec", row->rate.dropped);
	json_add_u64(o, "heavy_flows", top_count_flows(top, row));
	return o;
}

void top_print(struct top *top)
{
	cJSON *json;

	if (!wants_json(top->cli)) {
		print_table(top);
		return;
	}
	json = cJSON_CreateArray();
	for (size_t i = 0; i < top->model.view_len; i++)
		cJSON_AddItemToArray(json,
				     row_json(top, top_row_at(&top->model, i)));
	json_print(json);
}

static bool wants_screen(const struct top *top)
{
	return !wants_json(top->cli) && !top->cli->opts.value[OPT_ONCE] &&
	       isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

int top_run(struct top *top)
{
	struct timespec interval = {.tv_sec = (time_t)top->seconds};
	int r = top_read(top);

	if (r < 0)
		return failure(top->cli, r);
	if (wants_screen(top)) {
		r = top_screen(top);
		if (r != -ENOTTY)
			return r;
	}
	/* The rates are those of an interval. */
	while (nanosleep(&interval, &interval) < 0 && errno == EINTR)
		;
	r = top_read(top);
	if (r < 0)
		return failure(top->cli, r);
	top_print(top);
	return EXIT_SUCCESS;
}
