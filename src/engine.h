/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loaded programs, which attachments share: the kernel takes milliseconds
 * to verify one. An attachment has a stub of its own on the hook, a few
 * instructions that tail-call an engine with the number of a slot, where the
 * engine finds the limits and the state of this attachment. An engine has a few
 * slots; when they are taken, another bank of the same engine is loaded.
 *
 *   <bpffs>/natra/engine_<id>/<bank>/{programs,configs,states[,subnets]}
 *
 * The id is a hash of the BPF object and of all that is fixed when it is loaded,
 * subnets included: another build's engine is another one, and serves its
 * attachments until they go. flock(2) on its directory guards loading, taking a
 * slot, and removal.
 */
#ifndef NATRA_ENGINE_H
#define NATRA_ENGINE_H

#include "pin.h"
#include "program.h"

/* A bank: owned descriptors. */
struct engine {
	int programs_fd; /* program array with one entry */
	int configs_fd;
	int states_fd;
	int subnets_fd; /* -1: it serves attachments without any */
};

#define ENGINE_INIT                                                            \
	{                                                                      \
		.programs_fd = -1, .configs_fd = -1, .states_fd = -1,          \
		.subnets_fd = -1                                               \
	}

void engine_close(struct engine *engine);
#define cleanup_engine __attribute__((cleanup(engine_close)))

/* Of the engine for these options, by this build. */
int engine_id(struct natra *n, const struct program_options *options,
	      uint64_t *ret_id);

/* 1: a bank of this engine is pinned, so this kernel takes its program. 0: there
 * is none, or it is not the first one. */
int engine_is_loaded(struct natra *n, const struct program_options *options);

/* Loads a bank without pinning it. */
int engine_load(struct natra *n, const struct program_options *options,
		uint32_t slots, struct engine *ret_engine);

/* Makes a slot an attachment's: its state begins at zero. */
int engine_take_slot(struct natra *n, const struct engine *engine,
		     uint32_t index, uint64_t owner,
		     const struct natra_limits *limits);

/* Gives a half of a generation a slot in a pinned bank, loaded first if none
 * has one left, and loads its stub. */
int engine_enter(struct natra *n, struct pin_gen *gen, enum half half,
		 const struct program_options *options,
		 const struct natra_limits *limits,
		 struct program *ret_program);

/* Opens what a half has; -ENOENT without an error text if it is not there or
 * has become another's. */
int engine_open_slot(struct natra *n, const struct meta_slot *slot,
		     struct slot *ret_slot);

/* Frees it, and its bank, if that serves nobody and another has a free slot. What
 * is gone is not missed. */
int engine_leave(struct natra *n, const struct meta_slot *slot);

/* Removes the banks that serve nobody. */
int engine_sweep(struct natra *n);

/* The same, after freeing the slots that are in no record: somebody removed the
 * pins of an attachment by hand. */
int engine_gc(struct natra *n);

#endif
