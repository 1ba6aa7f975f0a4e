/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing the kernel's state with what the metadata says. */
#ifndef NATRA_ATTACH_CHECK_H
#define NATRA_ATTACH_CHECK_H

#include "kernel/netns_find.h"
#include "state/pin.h"

/*
 * 0: every program is on its hook and fq is there where it was put; -ENODEV:
 * the interface is gone; -EBADE: something is missing, the error text says
 * what. hint_fd: a namespace where the pod may be, or -1.
 */
int check_attached(struct natra *n, const struct pin_gen *gen, int hint_fd);

/* -EBADE if the limits in the kernel are not those of the metadata. */
int check_limits(struct natra *n, const struct pin_gen *gen);

/*
 * Returns 1 if the interface of a record exists, whatever else is wrong, and 0
 * if it does not exist any more. It looks at the pod's interface; but if natra
 * has something on the host side only, at the host's: a veth goes with its
 * peer.
 */
int check_exists(struct natra *n, const struct pin_gen *gen);

/*
 * These two do the same in two steps, for a walk over many records.
 * check_has_link returns 1 if a TCX link is attached, which tells that there is
 * an interface, even in a namespace that nobody finds. Otherwise it returns 0,
 * and the seat that check_seat returns has to be looked at, see netns_index.h.
 */
int check_has_link(struct natra *n, const struct pin_gen *gen);
struct netns_seat check_seat(const struct pin_gen *gen);

/* Every program on the hooks in use, see natra_foreach_neighbour. */
int check_neighbours(struct natra *n, const struct pin_gen *gen,
		     natra_neighbour_fn fn, void *arg);

#endif
