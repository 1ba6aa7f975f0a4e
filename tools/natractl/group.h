/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NATRACTL_GROUP_H
#define NATRACTL_GROUP_H

#include <natra/natra.h>

#include "opts.h"

/* A name with its terminator, returned by value like struct unit_text. */
struct group_name {
	char text[NATRA_GROUP_NAME_MAX + 1];
};

/* Returns the name of a group; "" if there is none of this number. */
struct group_name group_name(struct natra *n, uint32_t number);

/* Returns the options of `group set` that are also those of an attachment. */
uint64_t group_limit_options(void);

#endif
