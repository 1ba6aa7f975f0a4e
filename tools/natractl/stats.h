/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters on paper. */
#pragma once

#include "json.h"
#include "sample.h"

/* What was counted from `before` to `now`. A counter that went back belongs to
 * an attachment made anew in between and is taken whole. */
struct natra_stats stats_between(const struct natra_stats *before,
				 const struct natra_stats *now);
void stats_print(const struct sample *sample);
void stats_print_rates_header(int id_width);
void stats_print_rates(const struct sample *delta, uint64_t interval_ns,
		       int id_width);
cJSON *stats_json(const struct sample *sample);
