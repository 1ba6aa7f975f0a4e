/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing the kernel's state with what the metadata says. */
#ifndef NATRA_CHECK_H
#define NATRA_CHECK_H

#include "netns_index.h"
#include "pin.h"

/*
 * 0: every program is on its hook and fq is there where it was put; -ENODEV:
 * the interface is gone; -EBADE: something is missing, the error text says
 * what. hint_fd: a namespace where the pod may be, or -1.
 */
int check_attached(struct natra *n, const struct pin_gen *gen, int hint_fd);

/* -EBADE if the limits in the kernel are not those of the metadata. */
int check_limits(struct natra *n, const struct pin_gen *gen);

/*
 * Whether the interface of a record exists: 1, it is there, whatever else is
 * wrong; 0, it is no more. That of the pod; or, if natra has something on the host
 * side only, that one: a veth goes with its peer.
 */
int check_exists(struct natra *n, const struct pin_gen *gen);

/*
 * The same in two steps, for a walk over many. A TCX link that is attached tells
 * that there is an interface (1), even in a namespace that nobody finds. Otherwise
 * (0) its seat has to be looked at, see netns_index.h.
 */
int check_has_link(struct natra *n, const struct pin_gen *gen);
struct netns_seat check_seat(const struct pin_gen *gen);

/* Every program on the hooks in use, see natra_neighbours. */
int check_neighbours(struct natra *n, const struct pin_gen *gen,
		     int (*cb)(void *arg, const struct natra_hook_entry *entry),
		     void *arg);

#endif
