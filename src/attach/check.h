/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the kernel's state with a record. */
#ifndef NATRA_ATTACH_CHECK_H
#define NATRA_ATTACH_CHECK_H

#include "state/pin.h"

/*
 * Returns 0 if every program is on its hook and fq is where it was put, -ENODEV
 * if the interface is gone, and -EBADE if something else is missing, or another
 * interface is in its place, which the error text names. hint_fd is a namespace where the pod may be, or -1.
 */
int check_attached(struct natra *n, const struct pin_gen *gen, int hint_fd);

/* Returns -EBADE if the limits in the kernel are not those of the record. */
int check_limits(struct natra *n, const struct pin_gen *gen);

/*
 * Returns 1 if the interface of a record exists, whatever else is wrong, and 0
 * if it does not exist any more. It looks at the pod's interface; but if natra
 * has something on the host side only, at the host's: a veth goes with its
 * peer.
 */
int check_exists(struct natra *n, const struct pin_gen *gen);

/* Returns the interface that check_exists looks for if nothing else proves that there is
 * one, see identity_exists. */
const struct record_link *check_sought_link(const struct pin_gen *gen);

/* Walks over the programs on the hooks that natra uses, see
 * natra_foreach_neighbour. */
int check_neighbours(struct natra *n, const struct pin_gen *gen,
		     natra_neighbour_fn fn, void *arg);

/* Returns whether another owner's program runs before the attachment's on the host side, where
 * attaching anew goes to the front again. In a pod's namespace the pod can put one there each
 * time. */
bool check_is_overtaken(struct natra *n, const struct pin_gen *gen);

#endif
