/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of events, one for all programs of the node:
 *
 *   <bpffs>/natra/abi<number>/events/ring
 *
 * It is pinned before the first program that writes into it is loaded, and
 * removed after the last engine. flock(2) on the directory guards both.
 */
#ifndef NATRA_STATE_RING_H
#define NATRA_STATE_RING_H

#include <stddef.h>

#include "base/handle.h"
#include "../../bpf/natra_shared.h"

/* Makes a ring that is not pinned. Returns its descriptor or -errno. */
int ring_make(struct natra *n);

/*
 * Opens the ring for a program that is to be loaded, and pins a new one if there is
 * none. The caller has locked an engine, so that ring_sweep lets it stay. Returns its
 * descriptor, or -1 after it has logged why there is none: limits must work without
 * events.
 */
int ring_enter(struct natra *n);

/* Removes the ring of each ABI of which no engine exists. If it cannot be removed, which is logged, it
 * stays for the next program, or the next sweep: it limits nobody. */
void ring_sweep(struct natra *n);

/* A ring as a reader sees it. `map` is NULL if none is open. */
struct ring_view {
	const struct natra_event_ring *map;
	unsigned long inode; /* of the pin */
	uint64_t place;      /* of the next event in the order of all */
};

/* Opens the ring for reading, from the oldest event on. Returns -ENOENT, without
 * an error text, if there is none, and -ESTALE if something else is pinned in its
 * place. */
int ring_open(struct natra *n, struct ring_view *ret_view);
void ring_close(struct ring_view *view);
#define cleanup_ring_view __attribute__((cleanup(ring_close)))

/* Returns 1 if another ring is pinned by now, 0 if not, or -errno. */
int ring_is_replaced(struct natra *n, const struct ring_view *view);

/* Reads the next event: returns 1, or 0 if there is none at present. Adds to
 * *lost how many were overwritten before they were read. */
int ring_read(struct ring_view *view, struct natra_event_entry *ret_event,
	      uint64_t *lost);

#endif
