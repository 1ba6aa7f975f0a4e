/* SPDX-License-Identifier: BSD-2-Clause */
/* An attachment's slot of a bank: its limits, its counters and its flows. */
#ifndef NATRA_STATE_SLOT_H
#define NATRA_STATE_SLOT_H

#include <stdint.h>

#include "base/handle.h"
#include "../../bpf/natra_shared.h"

/* A slot that is open: the arrays of its bank, whose descriptors are owned, and
 * its number in them. */
struct slot {
	int config_fd;
	int state_fd;
	uint32_t index;
};

#define SLOT_INIT                                                              \
	{                                                                      \
		.config_fd = -1, .state_fd = -1                                \
	}

void slot_close(struct slot *slot);

/* Returns the slot of a class of the same attachment, which borrows the descriptors.
 * 0 is the number of its own. */
static inline struct slot slot_of_class(const struct slot *slot,
					uint32_t number)
{
	return (struct slot){slot->config_fd, slot->state_fd,
			     slot->index + number};
}
#define cleanup_slot __attribute__((cleanup(slot_close)))

/* Changes the limits at once: each packet sees the old ones or the new ones.
 * Calls must not overlap. */
int slot_set_limits(struct natra *n, const struct slot *slot,
		    const struct natra_limits *limits);
int slot_get_limits(struct natra *n, const struct slot *slot,
		    struct natra_limits *ret_limits);
/* Does so for a slot and those behind it. */
int slot_get_all_limits(struct natra *n, const struct slot *slot,
			uint32_t count, struct natra_limits *ret_limits);
int slot_read_config(struct natra *n, const struct slot *slot,
		     struct natra_config *ret);

/* The states of slots that are side by side, mapped. */
struct slot_states {
	struct natra_state *list;
	void *map;
	size_t size;
};

/* Maps the states of a slot and of those behind it, whose values are of this build's layout. */
int slot_map(struct natra *n, const struct slot *slot, uint32_t count,
	     struct slot_states *ret_states);
void slot_unmap(struct slot_states *states);

/* Copies the state. The caller frees *ret_state. */
int slot_read_state(struct natra *n, const struct slot *slot,
		    struct natra_state **ret_state);

/* Sums the counters over the stripes of a state that was read, or is mapped. */
struct natra_counters slot_sum(const struct natra_state *state);

/* Returns the bytes of small flows that passed free. */
uint64_t slot_free_bytes(const struct natra_state *state);

/* Returns the present time as an entry of the table of flows has it. */
uint32_t slot_flow_now(void);

/* Reads the table of flows, which has NATRA_FLOWS entries. Those that are
 * empty, or were being written, have tag 0. */
int slot_flows(struct natra *n, const struct slot *slot,
	       struct natra_flow_entry *ret_flows);

#endif
