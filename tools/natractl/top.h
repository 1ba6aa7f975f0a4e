/* SPDX-License-Identifier: BSD-2-Clause */
/* `natractl top` of the whole node: what its files share. */
#ifndef NATRACTL_TOP_H
#define NATRACTL_TOP_H

#include "cli.h"
#include "output.h"
#include "top_model.h"

/* A flow without a packet for longer is not counted as heavy. */
#define TOP_IDLE_NS 10000000000ULL

struct top {
	struct cli *cli;
	uint32_t seconds; /* between two readings */
	int direction;    /* NATRA_DIRECTION_MAX: both */
	struct top_model model;
};

/* Reads all attachments into the model. Returns 0 or an error code of the
 * library. */
int top_read(struct top *top);
/* Returns the number of a row's heavy flows, or 0 if they cannot be read. */
size_t top_count_flows(const struct top *top, const struct top_row *row);

/* Returns a rate in six columns or less, such as "9.77M" for 9.77 Mbit/s. */
struct unit_text top_rate_text(uint64_t bits_per_sec);
struct unit_text top_limit_text(const struct top_row *row);
/* Prints what is there as one table, or as JSON. */
void top_print(struct top *top);

/* Draws on the terminal until the user or a signal ends it. Returns the exit code,
 * or -ENOTTY after it has said why this terminal cannot be drawn on. */
int top_screen(struct top *top);

/* Returns the exit code. */
int top_run(struct top *top);

#endif
