/* SPDX-License-Identifier: BSD-2-Clause */
#include "top_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/memory.h"

uint64_t top_bits_per_sec(uint64_t bytes, uint64_t ns)
{
	return ns ? (uint64_t)((double)bytes * 8e9 / (double)ns) : 0;
}

uint64_t top_percent(const struct top_row *row)
{
	const uint64_t limit = row->reading.limit_bits_per_sec;

	return limit ? (uint64_t)((double)row->rate.passed * 100 /
				  (double)limit)
		     : 0;
}

static bool is_of(const struct top_row *row, const struct top_of *of)
{
	const struct top_of *its = &row->reading.of;

	return its->kind == of->kind && its->direction == of->direction &&
	       strcmp(its->id, of->id) == 0 && strcmp(its->part, of->part) == 0;
}

/* Returns the row of the last update, or NULL. Readings come in the same order
 * each time, so the search begins where the last one has ended. */
static const struct top_row *find_old(const struct top_model *model,
				      const struct top_reading *reading,
				      size_t *next)
{
	for (size_t i = 0; i < model->len; i++) {
		size_t at = (*next + i) % model->len;

		if (is_of(&model->rows[at], &reading->of)) {
			*next = at + 1;
			return &model->rows[at];
		}
	}
	return NULL;
}

uint64_t top_offered(const struct top_row *row)
{
	return row->rate.passed + row->rate.dropped;
}

void top_fit_name(const char *name, size_t width,
		  char ret_text[TOP_NAME_MAX + 1])
{
	const size_t len = strlen(name);
	const size_t tail = width / 2;

	if (width > TOP_NAME_MAX)
		width = TOP_NAME_MAX;
	if (len <= width)
		(void)snprintf(ret_text, TOP_NAME_MAX + 1, "%s", name);
	else
		(void)snprintf(ret_text, TOP_NAME_MAX + 1, "%.*s~%s",
			       (int)(width - tail - 1), name,
			       name + len - tail);
}

static bool went_back(const struct traffic *before, const struct traffic *now)
{
	return now->passed < before->passed || now->held < before->held ||
	       now->marked < before->marked || now->dropped < before->dropped;
}

static struct traffic rates(const struct traffic *before,
			    const struct traffic *now, uint64_t ns)
{
	static const struct traffic none = {0};

	if (went_back(before, now))
		before = &none;
	return (struct traffic){
		.passed = top_bits_per_sec(now->passed - before->passed, ns),
		.held = top_bits_per_sec(now->held - before->held, ns),
		.marked = top_bits_per_sec(now->marked - before->marked, ns),
		.dropped = top_bits_per_sec(now->dropped - before->dropped, ns),
	};
}

static void remember(struct top_row *row, const struct top_row *old)
{
	const uint64_t percent = top_percent(row);

	row->flows = old->flows;
	row->history_len = old->history_len;
	if (row->history_len < TOP_HISTORY)
		row->history_len++;
	memcpy(row->history + 1, old->history, row->history_len - 1);
	row->history[0] = percent < UINT8_MAX ? (uint8_t)percent : UINT8_MAX;
}

void top_model_update(struct top_model *model,
		      const struct top_reading *readings, size_t len,
		      uint64_t now_ns)
{
	struct top_row *rows = memory_new(len * sizeof(*rows));
	size_t *view = memory_new(len * sizeof(*view));
	size_t next = 0;

	for (size_t i = 0; i < len; i++) {
		const struct top_row *old =
			find_old(model, &readings[i], &next);

		rows[i].reading = readings[i];
		if (!old)
			continue;
		rows[i].rate = rates(&old->reading.bytes, &readings[i].bytes,
				     now_ns - model->taken_ns);
		remember(&rows[i], old);
	}
	free(model->rows);
	free(model->view);
	model->rows = rows;
	model->len = len;
	model->view = view;
	model->taken_ns = now_ns;
	top_model_arrange(model);
}

/* Returns the number by which rows are sorted, the largest first. */
static uint64_t weight(const struct top_row *row, enum top_key key)
{
	switch (key) {
	case TOP_KEY_LOSS:
		return row->rate.held + row->rate.dropped;
	case TOP_KEY_RATE:
		return row->rate.passed;
	case TOP_KEY_CAP:
		return top_percent(row);
	case TOP_KEY_DROPPED:
		return row->rate.dropped;
	default:
		return 0;
	}
}

static int order(const void *a, const void *b, void *arg)
{
	const struct top_model *model = arg;
	const struct top_row *x = &model->rows[*(const size_t *)a];
	const struct top_row *y = &model->rows[*(const size_t *)b];
	const uint64_t of_x = weight(x, model->key);
	const uint64_t of_y = weight(y, model->key);
	int names;

	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	names = strcmp(x->reading.name, y->reading.name);
	if (names == 0)
		names = strcmp(x->reading.of.id, y->reading.of.id);
	return names ? names
		     : (int)x->reading.of.direction -
			       (int)y->reading.of.direction;
}

static bool is_shown(const struct top_row *row, const char *filter)
{
	return strcasestr(row->reading.name, filter) ||
	       strcasestr(row->reading.of.id, filter) ||
	       strcasestr(row->reading.ifname, filter);
}

void top_model_arrange(struct top_model *model)
{
	model->view_len = 0;
	for (size_t i = 0; i < model->len; i++) {
		if (is_shown(&model->rows[i], model->filter))
			model->view[model->view_len++] = i;
	}
	if (model->view_len)
		qsort_r(model->view, model->view_len, sizeof(*model->view),
			order, model);
}

void top_model_free(struct top_model *model)
{
	free(model->rows);
	free(model->view);
	*model = (struct top_model){0};
}

struct top_row *top_row_at(const struct top_model *model, size_t at)
{
	return &model->rows[model->view[at]];
}

size_t top_model_find(const struct top_model *model, const struct top_of *of)
{
	for (size_t i = 0; i < model->view_len; i++) {
		if (is_of(top_row_at(model, i), of))
			return i;
	}
	return TOP_NOWHERE;
}

/* A rate over the limit, such as that of small flows, is as high as the limit. */
static uint8_t level_of(uint8_t percent)
{
	if (!percent)
		return 0;
	return percent < 100 ? (uint8_t)(1 + percent * (TOP_LEVELS - 1) / 100)
			     : TOP_LEVELS;
}

void top_spark(const struct top_row *row, size_t count, uint8_t *levels,
	       size_t width)
{
	if (count > TOP_HISTORY)
		count = TOP_HISTORY;
	memset(levels, 0, width);
	/* A narrow terminal has no cells. */
	if (!width || !count)
		return;
	for (size_t i = 0; i < count && i < row->history_len; i++) {
		/* Value i is the one of i intervals ago. */
		const size_t cells = width < count ? width : count;
		const size_t at = width - 1 - i * cells / count;
		const uint8_t level = level_of(row->history[i]);

		if (level > levels[at])
			levels[at] = level;
	}
}

static bool is_same_flow(const struct natra_flow *a, const struct natra_flow *b)
{
	return a->ip_version == b->ip_version && a->protocol == b->protocol &&
	       a->sport == b->sport && a->dport == b->dport &&
	       memcmp(a->saddr, b->saddr, sizeof(a->saddr)) == 0 &&
	       memcmp(a->daddr, b->daddr, sizeof(a->daddr)) == 0;
}

uint64_t top_flow_grown(const struct natra_flow *flow,
			const struct natra_flow *before, size_t before_len)
{
	for (size_t i = 0; i < before_len; i++) {
		if (is_same_flow(flow, &before[i]))
			return flow->bytes >= before[i].bytes
				       ? flow->bytes - before[i].bytes
				       : flow->bytes;
	}
	return 0;
}
