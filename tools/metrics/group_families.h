/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics of groups. */
#ifndef NATRA_METRICS_GROUP_FAMILIES_H
#define NATRA_METRICS_GROUP_FAMILIES_H

#include "collect.h"
#include "exposition.h"

void groups_write(struct exposition *e, const struct node_metrics *node);

#endif
