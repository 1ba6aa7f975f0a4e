/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of attachments at one time. */
#pragma once

#include "cli.h"

struct sample {
	char id[NATRA_ID_MAX + 1];
	bool has_backstop;
	uint64_t taken_ns; /* CLOCK_MONOTONIC */
	struct natra_stats stats;
};

struct sample_list {
	struct sample *items;
	size_t len;
};

/* Of the attachment that was asked for, or of all. 0 or an error code of the
 * library. */
int sample_list_read(const struct cli *cli, struct sample_list *ret_list);
void sample_list_free(struct sample_list *list);
/* NULL: not there. */
const struct sample *sample_list_find(const struct sample_list *list,
				      const char *id);
