/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of an attach: what is put where, in which order, and how it is undone. This
 * file makes no system calls of its own. */
#ifndef NATRA_ATTACH_SHAPER_H
#define NATRA_ATTACH_SHAPER_H

#include "attach/order.h"
#include "state/pin.h"

/* Carries an order out: attaches, or changes what the id has attached already. The
 * directory of the id is locked. */
int shaper_attach(struct natra *n, const struct pin_dir *dir,
		  const struct order *order, struct pin_gen *ret_gen);

#endif
