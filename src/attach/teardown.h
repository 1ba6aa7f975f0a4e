/* SPDX-License-Identifier: BSD-2-Clause */
/* Undoing what a generation's metadata says, whether it was finished or not. */
#ifndef NATRA_ATTACH_TEARDOWN_H
#define NATRA_ATTACH_TEARDOWN_H

#include "state/pin.h"

/*
 * Detaches the programs of a generation, removes its fq unless `keep` (may be
 * NULL) uses the same, and unpins it. What is gone is not missed. hint_fd: a
 * namespace where the pod may be, or -1.
 */
int teardown_gen(struct natra *n, const struct pin_gen *gen,
		 const struct meta *keep, int hint_fd);

/* Removes all generations under a locked key but `except`, which may be
 * NULL. */
int teardown_key(struct natra *n, const struct pin_key *key,
		 const struct pin_gen *except, int hint_fd);

#endif
