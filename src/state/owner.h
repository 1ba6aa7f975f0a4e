/* SPDX-License-Identifier: BSD-2-Clause */
/* An owner is a number that tells apart who has a slot: the leg of one generation of an attachment.
 * It is random but for a hash of the attachment's id and the leg, by which a reader knows whose an
 * event is after an edit has given the attachment other slots. */
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
