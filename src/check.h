/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing the kernel's state with what the metadata says. */
#ifndef NATRA_CHECK_H
#define NATRA_CHECK_H

#include "pin.h"

/*
 * 0: every program is on its hook and fq is there where it was put; -ENODEV:
 * the interface is gone; -EBADE: something is missing, the error text says
 * what. hint_fd: a namespace where the pod may be, or -1.
 */
int check_attached(struct natra *n, const struct pin_gen *gen, int hint_fd);

/* -EBADE if the limits in the kernel are not those of the metadata. */
int check_limits(struct natra *n, const struct pin_gen *gen);

/* 1: the interface is no more; 0: it is there, whatever else is wrong. */
int check_is_gone(struct natra *n, const struct pin_gen *gen);

/* Every program on the hooks in use, see natra_neighbours. */
int check_neighbours(struct natra *n, const struct pin_gen *gen,
		     int (*cb)(void *arg, const struct natra_hook_entry *entry),
		     void *arg);

#endif
