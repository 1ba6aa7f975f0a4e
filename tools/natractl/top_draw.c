/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_draw.h"

#include <curses.h>
#include <string.h>

/* The lines above the rows, and the one below. */
#define HEAD_LINES     2
#define FOOT_LINES     1
/* The columns of numbers take this width. */
#define NUMBERS_WIDTH  49
#define MARKED_WIDTH   7
#define IFNAME_WIDTH   16
/* Where the part of the limit stands behind the names. */
#define CAP_COLUMN     27
#define CAP_WIDTH      5
#define SPARK_MIN      10
#define NAME_MAX_WIDTH 48

struct widths {
	int name;
	int ifname; /* 0 where there is no room for it, nor for what is marked */
	int spark;
};

static const char *const key_names[TOP_KEY_MAX] = {
	[TOP_KEY_LOSS] = "held and dropped",
	[TOP_KEY_RATE] = "what passes",
	[TOP_KEY_CAP] = "part of the limit",
	[TOP_KEY_DROPPED] = "dropped",
	[TOP_KEY_NAME] = "name",
};

static int at_most(int number, int most)
{
	return number < most ? number : most;
}

size_t top_draw_room(void)
{
	int room = LINES - HEAD_LINES - FOOT_LINES;

	return room > 0 ? (size_t)room : 0;
}

/* In 80 columns a row has 18 for the name and 12 for the last minute. */
static struct widths widths_of(void)
{
	struct widths widths = {0};
	int left = COLS - NUMBERS_WIDTH;

	if (left > 2 * (IFNAME_WIDTH + SPARK_MIN) + MARKED_WIDTH) {
		widths.ifname = IFNAME_WIDTH;
		left -= IFNAME_WIDTH + MARKED_WIDTH;
	}
	widths.spark = at_most(left * 2 / 5, TOP_HISTORY);
	if (widths.spark < SPARK_MIN)
		widths.spark = left > 2 * SPARK_MIN ? SPARK_MIN : 0;
	widths.name = at_most(left - widths.spark - 1, NAME_MAX_WIDTH);
	if (widths.name < 4)
		widths.name = 4;
	return widths;
}

static void draw_spark(const struct top *top, const struct top_view *view,
		       const struct top_row *row, int width)
{
	static const char *const blocks[TOP_LEVELS + 1] = {
		" ",      "\u2581", "\u2582", "\u2583", "\u2584",
		"\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const plain[TOP_LEVELS + 1] = {
		" ", ".", ".", ":", "-", "=", "+", "*", "#"};
	uint8_t levels[TOP_HISTORY];

	top_spark(row, TOP_HISTORY / top->seconds, levels, (size_t)width);
	for (int i = 0; i < width; i++)
		addstr(view->is_utf8 ? blocks[levels[i]] : plain[levels[i]]);
}

/* Cuts the text where ncurses would go on in the next line. */
static void draw_line(int line, const char *text)
{
	mvaddnstr(line, 0, text, COLS);
}

static void draw_row(const struct top *top, const struct top_view *view,
		     const struct top_row *row, int line)
{
	const struct widths widths = widths_of();
	const struct top_reading *reading = &row->reading;
	char text[256], name[TOP_NAME_MAX + 1];
	int len;

	top_fit_name(reading->name, (size_t)widths.name, name);
	len = snprintf(text, sizeof(text), "%-*s ", widths.name, name);
	if (widths.ifname)
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				"%-*.*s ", widths.ifname - 1, widths.ifname - 1,
				reading->ifname);
	len += snprintf(
		text + len, sizeof(text) - (size_t)len,
		"%-3s %6s %7s %6s %4u%% %6s ",
		reading->of.direction == NATRA_DIRECTION_INGRESS ? "in" : "out",
		top_limit_text(row).text, top_rate_text(top_offered(row)).text,
		top_rate_text(row->rate.passed).text,
		(unsigned int)at_most((int)top_percent(row), 9999),
		top_rate_text(row->rate.held).text);
	if (widths.ifname)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%6s ",
				top_rate_text(row->rate.marked).text);
	snprintf(text + len, sizeof(text) - (size_t)len, "%6s %2zu ",
		 top_rate_text(row->rate.dropped).text, row->flows);
	draw_line(line, text);
	draw_spark(top, view, row, widths.spark);
	if (top_percent(row) > 100)
		(void)mvchgat(line, widths.name + widths.ifname + CAP_COLUMN,
			      CAP_WIDTH, A_BOLD, TOP_PAIR_OVER, NULL);
}

static void draw_bar(int line, const char *text)
{
	attron(A_REVERSE);
	mvprintw(line, 0, "%-*.*s", COLS, COLS, text);
	attroff(A_REVERSE);
}

static void draw_pods_head(const struct top *top)
{
	const struct top_model *model = &top->model;
	const struct widths widths = widths_of();
	char line[256];
	int len;

	snprintf(line, sizeof(line), "%zu of %zu rows by %s, each %u s%s%s",
		 model->view_len, model->len, key_names[model->key],
		 top->seconds, model->filter[0] ? ", filter: " : "",
		 model->filter);
	draw_line(0, model->len ? line : "No pod of this node is limited.");
	len = snprintf(line, sizeof(line), "%-*s ", widths.name, "POD");
	if (widths.ifname)
		len += snprintf(line + len, sizeof(line) - (size_t)len, "%-*s",
				widths.ifname, "INTERFACE");
	snprintf(line + len, sizeof(line) - (size_t)len,
		 "%-3s %6s %7s %6s %5s %6s %s%6s %2s %.*s", "DIR", "LIMIT",
		 "OFFERED", "PASSED", "CAP", "HELD",
		 widths.ifname ? "MARKED " : "", "DROP", "FL", widths.spark,
		 "LAST MINUTE");
	draw_bar(1, line);
}

static void draw_pods(const struct top *top, const struct top_view *view)
{
	const struct top_model *model = &top->model;

	draw_pods_head(top);
	for (size_t i = 0; i < top_draw_room(); i++) {
		const size_t at = view->first + i;

		if (at >= model->view_len)
			break;
		if (at == view->selected)
			attron(A_STANDOUT);
		draw_row(top, view, top_row_at(model, at), HEAD_LINES + (int)i);
		attroff(A_STANDOUT);
	}
}

/* Two IPv6 addresses with ports are wider than 80 columns. */
static int endpoint_width(void)
{
	const int width = at_most((COLS - 33) / 2, 48);

	return width > 8 ? width : 8;
}

static void draw_flow(const struct top_flows *flows, size_t i, int line)
{
	const struct natra_flow *flow = &flows->now[i];
	const uint64_t grown =
		top_flow_grown(flow, flows->before, flows->before_len);
	const int width = endpoint_width();
	char text[256];

	snprintf(
		text, sizeof(text), "%-7s %-*.*s %-*.*s %8s %6s %s",
		protocol_text(flow).text, width, width,
		endpoint_text(flow, flow->saddr, flow->sport).text, width,
		width, endpoint_text(flow, flow->daddr, flow->dport).text,
		unit_size(flow->bytes).text,
		top_rate_text(top_bits_per_sec(grown, flows->interval_ns)).text,
		unit_time(flow->idle_ns).text);
	draw_line(line, text);
}

static void draw_flows_head(const struct top *top, const struct top_view *view)
{
	const size_t at = top_model_find(&top->model, &view->of);
	const struct top_row *row;
	char line[256];

	if (at == TOP_NOWHERE) {
		draw_line(0, "This pod is no longer limited.");
	} else {
		row = top_row_at(&top->model, at);
		snprintf(line, sizeof(line),
			 "%s %s: %zu flows, limit %s, passed %s",
			 row->reading.name,
			 natra_direction_name(view->of.direction),
			 view->flows.now_len, top_limit_text(row).text,
			 top_rate_text(row->rate.passed).text);
		draw_line(0, line);
	}
	snprintf(line, sizeof(line), "%-7s %-*s %-*s %8s %6s %s", "PROTO",
		 endpoint_width(), "SOURCE", endpoint_width(), "DESTINATION",
		 "BYTES", "RATE", "IDLE");
	draw_bar(1, line);
}

static void draw_flows(const struct top *top, const struct top_view *view)
{
	const struct top_flows *flows = &view->flows;

	draw_flows_head(top, view);
	for (size_t i = 0; i < flows->now_len && i < top_draw_room(); i++)
		draw_flow(flows, i, HEAD_LINES + (int)i);
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"natractl top shows who is at the limit.",
		"",
		"h r c d n   sort by held and dropped, what passes, part of the",
		"            limit, dropped, name",
		"/           filter by name or interface; Enter keeps, Esc clears it",
		"Up Down     select; also j k, Page Up, Page Down, Home, End",
		"Enter       show the heavy flows of the selected row; Esc goes back",
		"?           this page",
		"q           quit",
		"",
		"All rates are in bit/s. OFFERED is PASSED and DROP together. CAP is",
		"the part of the limit that passes, red over 100 %. HELD waits for its",
		"turn in fq, MARKED tells the sender to slow down by ECN. FL are heavy",
		"flows, at most 32. LAST MINUTE is what passed, as high as the limit",
		"at the top. Classes of peers and groups have rows of their own.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		draw_line((int)i, lines[i]);
}

static void draw_foot(const struct top *top, const struct top_view *view)
{
	char line[256];

	if (view->is_typing)
		snprintf(line, sizeof(line), "filter: %s_", top->model.filter);
	else if (view->error[0])
		snprintf(line, sizeof(line), "not read: %.200s", view->error);
	else if (view->page == TOP_PAGE_PODS)
		snprintf(
			line, sizeof(line),
			"q quit  Enter flows  / filter  h r c d n sort  ? help");
	else
		snprintf(line, sizeof(line), "Esc back  q quit");
	draw_bar(LINES - 1, line);
}

void top_draw(const struct top *top, const struct top_view *view)
{
	erase();
	if (view->page == TOP_PAGE_PODS)
		draw_pods(top, view);
	else if (view->page == TOP_PAGE_FLOWS)
		draw_flows(top, view);
	else
		draw_help();
	draw_foot(top, view);
	refresh();
}
