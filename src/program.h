/* SPDX-License-Identifier: BSD-2-Clause */
/* The BPF object: loading it for one direction, and its maps. The only user of
 * the skeleton. */
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
	enum natra_subnets subnets; /* not NONE: the two below are used */
	int subnets_fd;
	bool peer_is_to; /* the other end is the destination */
};

enum program_map {
	PROGRAM_MAP_CONFIG,
	PROGRAM_MAP_STATE,
	PROGRAM_MAP_COUNTERS,
	PROGRAM_MAP_MAX
};

/* Owned descriptors, -1 where there is none. */
struct program {
	int prog_fd;
	uint32_t prog_id;
	int map_fd[PROGRAM_MAP_MAX];
};

#define PROGRAM_INIT                                                           \
	{                                                                      \
		.prog_fd = -1, .map_fd = { -1, -1, -1 }                        \
	}

int program_load(struct natra *n, const struct program_options *options,
		 const struct natra_limits *limits,
		 struct program *ret_program);
void program_close(struct program *program);
#define cleanup_program __attribute__((cleanup(program_close)))

/* The name of a map's pin. */
const char *program_map_name(enum program_map map);

/* Atomic for each packet; calls must not overlap. */
int program_set_limits(struct natra *n, int config_fd,
		       const struct natra_limits *limits);
int program_get_limits(struct natra *n, int config_fd,
		       struct natra_limits *ret_limits);

/* The map of subnets, filled; shared by the programs of an attachment. */
int program_make_subnets(struct natra *n, const struct subnets *subnets,
			 int *ret_fd);
/* Its blocks in order; the kind is not in it. */
int program_read_subnets(struct natra *n, int fd, struct subnets *ret_subnets);

/* Summed over the CPUs. */
int program_counters(struct natra *n, int counters_fd,
		     struct natra_counters *ret_counters);

/* The flow table; NATRA_FLOWS slots. Torn and empty slots have tag 0. */
int program_flows(struct natra *n, int state_fd,
		  struct natra_flow_slot *ret_flows);

#endif
