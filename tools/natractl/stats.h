/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of attachments at one time, and how they are shown. */
#ifndef NATRACTL_STATS_H
#define NATRACTL_STATS_H

#include "cli.h"
#include "json.h"

/* The counters of one class. */
struct class_sample {
	char name[NATRA_CLASS_NAME_MAX + 1];
	struct natra_stats stats;
};

struct sample {
	char id[NATRA_ID_MAX + 1];
	bool has_backstop;
	bool has_sli;                 /* its connections are measured */
	uint64_t taken_ns;            /* CLOCK_MONOTONIC */
	struct natra_stats stats;     /* without those of its classes */
	struct class_sample *classes; /* owned by the list */
	size_t classes_len;
};

struct sample_list {
	struct sample *items;
	size_t len;
	int exit_code; /* EXIT_FAILURE: what it lacks was said on stderr */
};

/* Returns the counters that were read just now. */
struct sample sample_of(const struct natra_info *info,
			const struct natra_stats *stats);
/* Reads the counters of the attachment that was asked for, or of all that have some. Returns 0
 * or an error code of the library. */
int sample_list_read(const struct cli *cli, struct sample_list *ret_list);
void sample_list_free(struct sample_list *list);
/* Returns NULL if the list does not have it. */
const struct sample *sample_list_find(const struct sample_list *list,
				      const char *id);

/* Returns what was counted from `before` to `now`. A counter that went back
 * belongs to an attachment that was made anew in between, and counts as a
 * whole. What is no counter is as it is now. */
struct natra_stats stats_between(const struct natra_stats *before,
				 const struct natra_stats *now);
/* Returns the counters of a class, or NULL if it was not there. */
const struct natra_stats *sample_class(const struct sample *sample,
				       const char *name);
void stats_print(const struct sample *sample);
void stats_print_rates_header(int id_width);
void stats_print_rates(const struct sample *delta, uint64_t interval_ns,
		       int id_width);
cJSON *stats_json(const struct sample *sample);

#endif
