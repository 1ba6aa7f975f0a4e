/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of public functions share. */
#ifndef NATRA_API_INTERNAL_H
#define NATRA_API_INTERNAL_H

#include "state/pin.h"

/* What a generation's record says; `interface_gone` is not in it. */
void info_of(const struct pin_gen *gen, struct natra_info *ret_info);

/* -EINVAL without a handle or an id. */
int require_id(struct natra *n, const char *id);

/* The id of what is attached to an interface; -ENOENT without an error text. */
int find_owner(struct natra *n, const struct netns_id *netns, uint32_t ifindex,
	       char *ret_id);

#endif
