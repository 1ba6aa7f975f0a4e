/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws the screens of `natractl top`: the pods, the flows of one, and the help.
 * ncurses writes to the terminal only what has changed. */
#ifndef NATRACTL_TOP_DRAW_H
#define NATRACTL_TOP_DRAW_H

#include "../common/flows.h"
#include "top.h"

enum top_page { TOP_PAGE_PODS, TOP_PAGE_FLOWS, TOP_PAGE_HELP };

/* The flows of the pod that is shown, and those of the reading before. */
struct top_flows {
	struct natra_flow now[NATRA_FLOWS_MAX];
	struct natra_flow before[NATRA_FLOWS_MAX];
	size_t now_len, before_len;
	uint64_t interval_ns;
};

struct top_view {
	enum top_page page;
	size_t selected; /* its index in the model's view */
	size_t first;    /* the index of the row at the top */
	/* The selected row stays selected where it moves. */
	struct top_of of;
	bool is_typing;  /* the filter */
	bool is_utf8;    /* the terminal shows block elements */
	char error[256]; /* of the last reading, "" if there is none */
	struct top_flows flows;
};

/* The colours of what is over the limit, where the terminal has some. */
#define TOP_PAIR_OVER 1

/* Returns how many rows of pods the terminal has room for. */
size_t top_draw_room(void);
void top_draw(const struct top *top, const struct top_view *view);

#endif
