/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads the BPF object for a bank of an engine. */
#ifndef NATRA_STATE_BANK_LOAD_H
#define NATRA_STATE_BANK_LOAD_H

#include "base/handle.h"
#include "state/program.h"
#include "../../bpf/natra_shared.h"

/* A bank, by the descriptors of its maps, which are owned. */
struct bank {
	int programs_fd; /* program array with one entry */
	int configs_fd;
	int states_fd;
	int object_fd; /* array of one entry: bank_object() of the program */
	/* Map of tables by slots, see connects_map.h; -1: it serves attachments
	 * that do not measure connections. */
	int connects_fd;
	/* Map of tries by slots, and program array with natra_shape, see
	 * natra_classes.bpf.h; -1: it serves attachments without classes. */
	int tries_fd;
	int next_fd;
};

#define BANK_INIT                                                              \
	{                                                                      \
		.programs_fd = -1, .configs_fd = -1, .states_fd = -1,          \
		.object_fd = -1, .connects_fd = -1, .tries_fd = -1,            \
		.next_fd = -1                                                  \
	}

void bank_close(struct bank *bank);
#define cleanup_bank __attribute__((cleanup(bank_close)))

/* Returns the id of the engine for these options. */
uint64_t engine_id(const struct program_options *options);

/* Returns the id of the BPF object that is compiled into this build. */
uint64_t bank_object(void);

/* Loads a bank without pinning it; object_fd stays -1. The programs write their
 * events into the ring `ring_fd`; with -1, into one that nobody reads. */
int bank_load(struct natra *n, const struct program_options *options,
	      uint32_t slots, int ring_fd, struct bank *ret_bank);

/* Loads this build's program with the maps of a bank. The caller owns
 * *ret_prog_fd. If the bank has a program behind it (next_fd), that is replaced at
 * once: both builds' programs call it in the same way. */
int bank_load_program(struct natra *n, const struct program_options *options,
		      int ring_fd, const struct bank *bank, int *ret_prog_fd);

#endif
