/* SPDX-License-Identifier: BSD-2-Clause */
/* A policy's subnets and those of its classes, as the BPF map in which programs look
 * addresses up. */
#ifndef NATRA_STATE_SUBNETS_MAP_H
#define NATRA_STATE_SUBNETS_MAP_H

#include "base/handle.h"
#include "policy/subnets.h"

/* Creates the map and fills it. */
int subnets_map_make(struct natra *n, const struct subnets *subnets,
		     int *ret_fd);

/* Reads the blocks in order. The map contains neither their kind nor what classes are
 * called: *subnets comes with those, and without any blocks. */
int subnets_map_read(struct natra *n, int fd, struct subnets *subnets);

/* Creates the map that has such maps by the slots of their attachments. */
int subnets_tries_make(struct natra *n, uint32_t slots, int *ret_fd);

/*
 * Changes the map from some rules to others of the same shape, or not at all.
 * Programs use it meanwhile: each lookup finds the old class of an address or its new
 * one.
 */
int subnets_map_change(struct natra *n, int fd, const struct subnets *from,
		       const struct subnets *to);

#endif
