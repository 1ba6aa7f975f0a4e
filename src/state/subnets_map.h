/* SPDX-License-Identifier: BSD-2-Clause */
/* A policy's subnets as the BPF map in which programs look addresses up. */
#ifndef NATRA_STATE_SUBNETS_MAP_H
#define NATRA_STATE_SUBNETS_MAP_H

#include "base/handle.h"
#include "policy/subnets.h"

/* Creates the map and fills it. */
int subnets_map_make(struct natra *n, const struct subnets *subnets,
		     int *ret_fd);

/* Reads the blocks in order. The map does not contain their kind,
 * which stays 0. */
int subnets_map_read(struct natra *n, int fd, struct subnets *ret_subnets);

#endif
