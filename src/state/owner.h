/* SPDX-License-Identifier: BSD-2-Clause */
/* What a slot says while it is a leg's of a generation: random, so that no other slot says the
 * same, but for the attachment and the leg. By these an event is known that is read when an edit
 * has put another slot in the place of the one it tells of. */
#ifndef NATRA_STATE_OWNER_H
#define NATRA_STATE_OWNER_H

#include <stdbool.h>
#include <stdint.h>

#include "state/record.h"

struct natra;

int owner_make(struct natra *n, const char *id, enum leg leg, uint64_t *ret);

/* Returns whether the attachment is this one, in whatever generation. */
bool owner_is_of(uint64_t owner, const char *id);
enum leg owner_leg(uint64_t owner);

#endif
