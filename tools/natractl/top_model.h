/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of `natractl top`: rates from two readings, their order, the filter
 * and the last minute. Nothing here reads or prints. */
#ifndef NATRACTL_TOP_MODEL_H
#define NATRACTL_TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <natra/natra.h>

#include "../common/traffic.h"

/* One value for each second of the last minute, if it is read once a second. */
#define TOP_HISTORY    60
#define TOP_NAME_MAX   95
#define TOP_FILTER_MAX 40
#define TOP_LEVELS     8

enum top_key {
	TOP_KEY_LOSS, /* held and dropped packets together */
	TOP_KEY_RATE,
	TOP_KEY_CAP,
	TOP_KEY_DROPPED,
	TOP_KEY_NAME,
	TOP_KEY_MAX
};

enum top_kind { TOP_POD, TOP_CLASS, TOP_GROUP, TOP_AUTOMATIC };

/* This says what a row is of, on which a selection stays. */
struct top_of {
	enum top_kind kind;
	enum natra_direction direction;
	char id[NATRA_ID_MAX + 1]; /* "": a group */
	char part[NATRA_GROUP_NAME_MAX +
		  1]; /* the class or the group; "": a pod */
};

/* This is what was read of one direction of an attachment, a class of peers or a group.
 * The name and the interface have no byte that a terminal would obey. */
struct top_reading {
	struct top_of of;
	char name[TOP_NAME_MAX + 1];   /* the label, or else the id */
	char ifname[TOP_NAME_MAX + 1]; /* "": a group */
	bool unshaped;
	uint64_t limit_bits_per_sec;
	struct traffic bytes;
};

struct top_row {
	struct top_reading reading;
	struct traffic rate; /* bits per second */
	size_t flows; /* for the caller, who alone knows how to count them */
	uint8_t history[TOP_HISTORY]; /* percent of the limit, newest first */
	size_t history_len;
};

struct top_model {
	struct top_row *rows; /* in the order of the readings */
	size_t len;
	size_t *view; /* the numbers of those that the filter leaves, in order */
	size_t view_len;
	uint64_t taken_ns;
	enum top_key key;
	char filter[TOP_FILTER_MAX + 1];
};

/* Replaces the rows. One whose counters went back belongs to an attachment that
 * was made anew, whose counters count as a whole; one that is new has no rate
 * yet. */
void top_model_update(struct top_model *model,
		      const struct top_reading *readings, size_t len,
		      uint64_t now_ns);
/* Filters and sorts after an update, or after `key` or `filter` was changed. */
void top_model_arrange(struct top_model *model);
void top_model_free(struct top_model *model);

/* Returns the row at this place of the view. */
struct top_row *top_row_at(const struct top_model *model, size_t at);

/* Returns where in the view a row is, or TOP_NOWHERE. */
#define TOP_NOWHERE SIZE_MAX
size_t top_model_find(const struct top_model *model, const struct top_of *of);

/* Returns what is offered, in bits per second: what passes and what is dropped. */
uint64_t top_offered(const struct top_row *row);

/* Writes a name into `width` columns, or fewer. One that is longer loses its middle: the
 * pods of a Deployment differ in their last letters, those of namespaces in the first. */
void top_fit_name(const char *name, size_t width,
		  char ret_text[TOP_NAME_MAX + 1]);

/* Returns the rate in percent of the limit, 0 without one. */
uint64_t top_percent(const struct top_row *row);

/* Writes `width` levels from 0 to TOP_LEVELS, the oldest first: the most of each
 * part of the last `count` values. */
void top_spark(const struct top_row *row, size_t count, uint8_t *levels,
	       size_t width);

/* Returns by how many bytes a flow has grown since the flows that were read
 * before, or 0 if it was not among them. */
uint64_t top_flow_grown(const struct natra_flow *flow,
			const struct natra_flow *before, size_t before_len);

/* Returns a quantity of bytes in a time as bits per second. */
uint64_t top_bits_per_sec(uint64_t bytes, uint64_t ns);

#endif
