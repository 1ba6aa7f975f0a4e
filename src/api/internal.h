/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the files of the public API share. */
#ifndef NATRA_API_INTERNAL_H
#define NATRA_API_INTERNAL_H

#include "state/pin.h"

/* Fills in what the record of a generation says, which is all but
 * `interface_gone` and `program_is_current`. */
void info_of(const struct pin_gen *gen, struct natra_info *ret_info);

/* Returns -EINVAL if there is no handle or no id, else 0. */
int require_id(struct natra *n, const char *id);

#endif
