/* SPDX-License-Identifier: BSD-2-Clause */
/* The size-versioned structs of the API. */
#ifndef NATRA_API_STRUCTS_H
#define NATRA_API_STRUCTS_H

#include "base/handle.h"

/*
 * Copies a caller's struct, whose first member is its size. An older caller's
 * is shorter: the rest is 0. A newer one's may be longer if that is all 0.
 */
int struct_in(struct natra *n, const char *name, void *to, size_t size,
	      const void *from);

/* A target whose strings have their lengths and which names one namespace. */
int target_in(struct natra *n, const struct natra_target *target,
	      struct natra_target *ret_target);

/* The reverse: as much as the caller has room for. */
int struct_out(struct natra *n, const char *name, void *to, const void *from,
	       size_t size);

/* struct_out will do. */
int struct_out_check(struct natra *n, const char *name, const void *to);

#endif
