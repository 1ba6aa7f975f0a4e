/* SPDX-License-Identifier: BSD-2-Clause */
/* What an attachment has for one direction: the stub on the hook, and the
 * engine's slot that the stub calls for. */
#ifndef NATRA_PROGRAM_H
#define NATRA_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "handle.h"
#include "subnets.h"
#include "../bpf/natra_hash.h"
#include "../bpf/natra_shared.h"

enum program_kind {
	PROGRAM_RX,  /* polices where an interface receives */
	PROGRAM_TX,  /* polices where it sends */
	PROGRAM_EDT, /* paces where it sends */
	PROGRAM_KIND_MAX
};

struct program_options {
	enum program_kind kind;
	bool has_l2;
	uint32_t sketch_width;
	const struct subnets *subnets; /* may be NULL: none */
	bool peer_is_to;               /* the other end is the destination */
};

/* The stub: an owned descriptor, -1 if there is none. */
struct program {
	int prog_fd;
	uint32_t prog_id;
};

#define PROGRAM_INIT                                                           \
	{                                                                      \
		.prog_fd = -1                                                  \
	}

/* Limits and state: entries of the engine's arrays. Owned descriptors. */
struct slot {
	int config_fd;
	int state_fd;
	uint32_t index;
};

#define SLOT_INIT                                                              \
	{                                                                      \
		.config_fd = -1, .state_fd = -1                                \
	}

void program_close(struct program *program);
void slot_close(struct slot *slot);
#define cleanup_slot __attribute__((cleanup(slot_close)))

/* A stub that calls the first program of `programs_fd` with a slot. */
int program_load_stub(struct natra *n, enum program_kind kind, int programs_fd,
		      uint32_t slot, struct program *ret_program);

/* Atomic for each packet; calls must not overlap. */
int slot_set_limits(struct natra *n, const struct slot *slot,
		    const struct natra_limits *limits);
int slot_get_limits(struct natra *n, const struct slot *slot,
		    struct natra_limits *ret_limits);

/* A map of subnets, filled. */
int program_make_subnets(struct natra *n, const struct subnets *subnets,
			 int *ret_fd);
/* Its blocks in order; the kind is not in it. */
int program_read_subnets(struct natra *n, int fd, struct subnets *ret_subnets);

/* Reads the counters of a slot, summed over the stripes. */
int slot_counters(struct natra *n, const struct slot *slot,
		  struct natra_counters *ret_counters);

/* The flow table; NATRA_FLOWS slots. Torn and empty slots have tag 0. */
int slot_flows(struct natra *n, const struct slot *slot,
	       struct natra_flow_entry *ret_flows);

#endif
