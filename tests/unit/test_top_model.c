/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of natractl top, from readings that the tests make up. */
#include "cm.h"

#include <stdio.h>
#include <string.h>

#include "../../tools/natractl/top_model.h"

#define SECOND 1000000000ULL

static struct top_model model;
static struct top_reading readings[4];

/* Makes four readings, pod-0 to pod-3, with limits of 8 Mbit/s. */
static int start(void **state)
{
	model = (struct top_model){0};
	memset(readings, 0, sizeof(readings));
	for (int i = 0; i < 4; i++) {
		snprintf(readings[i].of.id, sizeof(readings[i].of.id), "pod-%d",
			 i);
		snprintf(readings[i].name, sizeof(readings[i].name),
			 "shop/Web-%d", i);
		snprintf(readings[i].ifname, sizeof(readings[i].ifname),
			 "veth%d", i);
		readings[i].limit_bits_per_sec = 8000000;
	}
	return 0;
}

TH_STEP(stop, top_model_free(&model))

static void update(size_t len, uint64_t now_ns)
{
	top_model_update(&model, readings, len, now_ns);
}

static size_t find(const char *id, enum natra_direction direction)
{
	struct top_of of = {.kind = TOP_POD, .direction = direction};

	snprintf(of.id, sizeof(of.id), "%s", id);
	return top_model_find(&model, &of);
}

static const struct top_row *row(const char *id)
{
	const size_t at = find(id, NATRA_DIRECTION_INGRESS);

	assert_int_not_equal(at, TOP_NOWHERE);
	return top_row_at(&model, at);
}

/* Returns the ids' numbers in the order of the view. */
static const char *view(void)
{
	static char text[5];

	memset(text, 0, sizeof(text));
	for (size_t i = 0; i < model.view_len; i++)
		text[i] = top_row_at(&model, i)->reading.of.id[4];
	return text;
}

TH_TEST(rates_are_those_of_the_interval)
{
	readings[1].bytes = (struct traffic){1000, 100, 10, 5};
	update(4, 5 * SECOND);
	assert_int_equal(row("pod-1")->rate.passed, 0);
	readings[1].bytes = (struct traffic){2001000, 500100, 20, 1000005};
	update(4, 7 * SECOND);
	assert_int_equal(row("pod-1")->rate.passed, 8000000);
	assert_int_equal(row("pod-1")->rate.held, 2000000);
	assert_int_equal(row("pod-1")->rate.marked, 40);
	assert_int_equal(row("pod-1")->rate.dropped, 4000000);
	assert_int_equal(top_percent(row("pod-1")), 100);
	assert_int_equal(row("pod-2")->rate.passed, 0);
}

TH_TEST(attachment_made_anew_counts_as_a_whole)
{
	readings[0].bytes = (struct traffic){5000, 0, 0, 100};
	update(4, SECOND);
	/* One counter is larger than before, but all began again. */
	readings[0].bytes = (struct traffic){1000, 0, 0, 300};
	update(4, 2 * SECOND);
	assert_int_equal(row("pod-0")->rate.passed, 8000);
	assert_int_equal(row("pod-0")->rate.dropped, 2400);
}

TH_TEST(rows_come_and_go)
{
	update(2, SECOND);
	readings[0].bytes.passed = 1000;
	readings[3].bytes.passed = 1000;
	update(4, 2 * SECOND);
	assert_int_equal(row("pod-0")->rate.passed, 8000);
	assert_int_equal(row("pod-3")->rate.passed, 0);
	assert_int_equal(row("pod-3")->history_len, 0);
	/* pod-0 is gone, and the others move up. */
	for (int i = 0; i < 3; i++)
		readings[i] = readings[i + 1];
	readings[2].bytes.passed = 3000;
	update(3, 3 * SECOND);
	assert_int_equal(find("pod-0", NATRA_DIRECTION_INGRESS), TOP_NOWHERE);
	assert_int_equal(row("pod-3")->rate.passed, 16000);
	update(0, 4 * SECOND);
	assert_int_equal(model.view_len, 0);
}

TH_TEST(directions_are_two_rows)
{
	readings[1].of = readings[0].of;
	readings[1].of.direction = NATRA_DIRECTION_EGRESS;
	update(2, SECOND);
	readings[1].bytes.passed = 1000;
	update(2, 2 * SECOND);
	assert_int_equal(row("pod-0")->rate.passed, 0);
	assert_int_equal(
		top_row_at(&model, find("pod-0", NATRA_DIRECTION_EGRESS))
			->rate.passed,
		8000);
	/* A class of the pod is a row of its own. */
	readings[2].of = readings[1].of;
	readings[2].of.kind = TOP_CLASS;
	snprintf(readings[2].of.part, sizeof(readings[2].of.part), "lan");
	readings[2].bytes = (struct traffic){.passed = 500, .dropped = 250};
	update(3, 3 * SECOND);
	readings[2].bytes = (struct traffic){.passed = 1500, .dropped = 500};
	update(3, 4 * SECOND);
	assert_int_equal(
		top_row_at(&model, find("pod-0", NATRA_DIRECTION_EGRESS))
			->rate.passed,
		0);
	assert_int_equal(
		top_offered(top_row_at(
			&model, top_model_find(&model, &readings[2].of))),
		10000);
}

TH_TEST(long_names_lose_their_middle)
{
	static const struct {
		const char *name;
		size_t width;
		const char *fit;
	} rows[] = {
		{"shop/web", 8, "shop/web"},
		{"shop/web-6d4b75cb6d-x7k2p", 19, "shop/web-~b6d-x7k2p"},
		{"shop/web-6d4b75cb6d-9qd4z", 19, "shop/web-~b6d-9qd4z"},
		{"shop/web-6d4b75cb6d-9qd4z", 4, "s~4z"},
		{"shop/web", 1, "~"},
	};
	char text[TOP_NAME_MAX + 1];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		top_fit_name(rows[i].name, rows[i].width, text);
		assert_string_equal(text, rows[i].fit);
	}
}

TH_TEST(keys_sort_the_largest_first_and_then_by_name)
{
	update(4, SECOND);
	readings[1].bytes = (struct traffic){9000, 0, 0, 300};
	readings[2].bytes = (struct traffic){8000, 200, 0, 200};
	readings[3].bytes = (struct traffic){7000, 0, 0, 0};
	readings[3].limit_bits_per_sec = 80000;
	update(4, 2 * SECOND);
	assert_string_equal(view(), "2103");
	model.key = TOP_KEY_DROPPED;
	top_model_arrange(&model);
	assert_string_equal(view(), "1203");
	model.key = TOP_KEY_RATE;
	top_model_arrange(&model);
	assert_string_equal(view(), "1230");
	model.key = TOP_KEY_CAP;
	top_model_arrange(&model);
	assert_string_equal(view(), "3012");
	model.key = TOP_KEY_NAME;
	top_model_arrange(&model);
	assert_string_equal(view(), "0123");
}

TH_TEST(filter_takes_names_ids_and_interfaces)
{
	static const struct {
		const char *filter, *view;
	} cases[] = {{"web-2", "2"},
		     {"POD-1", "1"},
		     {"veth3", "3"},
		     {"shop", "0123"},
		     {"%", ""}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(model.filter, sizeof(model.filter), "%s",
			 cases[i].filter);
		update(4, SECOND);
		assert_string_equal(view(), cases[i].view);
		top_model_arrange(&model);
		assert_string_equal(view(), cases[i].view);
	}
}

TH_TEST(last_minute_is_drawn_from_the_right)
{
	uint8_t levels[6];

	update(1, SECOND);
	/* The rate is 100 % of the limit in one second, and 1 % in the next. */
	readings[0].bytes.passed = 1000000;
	update(1, 2 * SECOND);
	readings[0].bytes.passed += 10000;
	update(1, 3 * SECOND);
	assert_int_equal(row("pod-0")->history_len, 2);
	top_spark(row("pod-0"), 6, levels, 6);
	assert_memory_equal(levels, "\0\0\0\0\x8\x1", 6);
	/* Two seconds share a cell, which shows the higher one. */
	top_spark(row("pod-0"), 12, levels, 6);
	assert_memory_equal(levels, "\0\0\0\0\0\x8", 6);
	for (int i = 0; i < 2 * TOP_HISTORY; i++)
		update(1, (uint64_t)(4 + i) * SECOND);
	assert_int_equal(row("pod-0")->history_len, TOP_HISTORY);
	top_spark(row("pod-0"), TOP_HISTORY, levels, 6);
	assert_memory_equal(levels, "\0\0\0\0\0\0", 6);
}

TH_TEST(last_minute_without_cells_writes_nothing)
{
	uint8_t levels[2] = {0};

	update(1, SECOND);
	readings[0].bytes.passed = 1000000;
	update(1, 2 * SECOND);
	top_spark(row("pod-0"), 6, levels + 1, 0);
	assert_memory_equal(levels, "\0\0", 2);
	top_spark(row("pod-0"), 0, levels, 2);
	assert_memory_equal(levels, "\0\0", 2);
}

TH_TEST(marked_packets_are_held_only_where_it_is_paced)
{
	const struct natra_direction_stats stats = {
		.mice.bytes = 1,
		.admitted.bytes = 2,
		.paced.bytes = 4,
		.marked.bytes = 8,
		.dropped_rate.bytes = 16,
		.dropped_horizon.bytes = 32,
		.unlimited.bytes = 64,
		.other.bytes = 128,
	};

	assert_int_equal(traffic_of(&stats, true).held, 12);
	assert_int_equal(traffic_of(&stats, false).held, 4);
	assert_int_equal(traffic_of(&stats, false).passed, 207);
	assert_int_equal(traffic_of(&stats, false).marked, 8);
	assert_int_equal(traffic_of(&stats, false).dropped, 48);
}

TH_TEST(flows_grow_since_the_reading_before)
{
	const struct natra_flow before[] = {{.sport = 1, .bytes = 10},
					    {.sport = 2, .bytes = 20}};
	struct natra_flow flow = {.sport = 2, .bytes = 50};

	assert_int_equal(top_flow_grown(&flow, before, 2), 30);
	assert_int_equal(top_flow_grown(&flow, before, 1), 0);
	/* Its entry was another flow's in between. */
	flow.bytes = 15;
	assert_int_equal(top_flow_grown(&flow, before, 2), 15);
	assert_int_equal(top_bits_per_sec(1000, SECOND / 2), 16000);
	assert_int_equal(top_bits_per_sec(1000, 0), 0);
}

TH_MAIN_EACH(start, stop)
