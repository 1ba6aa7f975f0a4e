/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loaded programs, which attachments share: the kernel takes milliseconds
 * to verify one. An attachment has a stub of its own on the hook, a few
 * instructions that tail-call an engine with the number of a slot, where the
 * engine finds the limits and the state of this attachment. An engine has a few
 * slots; when they are taken, another bank of the same engine is loaded.
 *
 *   <bpffs>/natra/abi<number>/engine_<id>/<bank>/
 *           {programs,configs,states,object[,connects][,tries,next]}
 *
 * The id is a hash of the pinned layout and of all that is fixed when a program
 * is loaded. It does not depend on the BPF object: a build
 * that takes a slot in another build's bank, or renews it, puts its own program
 * into the array first, and all attachments of that bank follow. `object` is
 * the id of the BPF object that the program came from. flock(2) on the engine's
 * directory guards loading, taking a slot, changing the program, and removal.
 */
#ifndef NATRA_STATE_ENGINE_H
#define NATRA_STATE_ENGINE_H

#include "state/bank.h"
#include "state/pin.h"
#include "state/program.h"
#include "state/slot.h"
#include "state/stub.h"

/* Returns the options of the program that a leg needs, from its record. */
struct program_options engine_options(const struct record *record,
				      enum leg leg);

/* Returns whether this build's programs can run on the maps that the legs of an
 * attachment have. */
bool engine_serves(const struct record *record);

/* Gives a leg of a generation its slots and loads its stub. If no bank has as many
 * free ones, loads and pins another bank first. */
int engine_enter(struct natra *n, struct pin_gen *gen, enum leg leg,
		 const struct program_options *options,
		 const struct slot_content *content, struct stub *ret_stub);

/* Gets the kernel's id of the map in which a leg's programs look for classes. Returns
 * -ENOENT like engine_open_slot. */
int engine_trie_id(struct natra *n, const struct record_slot *slot,
		   uint32_t *ret_id);

/* Sets *ret_current to whether the program of a leg's slot is this build's.
 * Returns -ENOENT like engine_open_slot. */
int engine_is_current(struct natra *n, const struct record_slot *slot,
		      bool *ret_current);

/*
 * Replaces the program of the slot's bank by this build's, if it is another's,
 * for all attachments of the bank: no packet is lost or passes unjudged
 * meanwhile, and the state of each slot stays. Returns -ENOENT like
 * engine_open_slot.
 */
int engine_renew(struct natra *n, const struct record_slot *slot,
		 const struct program_options *options);

/* Opens a leg's slot. Returns -ENOENT without an error text if the slot is not
 * there or has become another attachment's, and -ESTALE if its maps are not of
 * this layout. */
int engine_open_slot(struct natra *n, const struct record_slot *slot,
		     struct slot *ret_slot);

/* Frees a leg's slots, and removes their bank if no other slot of it is taken and another
 * bank has a free slot. It is no error if the slot or the bank does not exist. */
int engine_leave(struct natra *n, const struct record_slot *slot);

/* Removes the banks of which no slot is taken. Banks of another ABI are all removed as
 * soon as no record of that ABI exists. */
int engine_sweep(struct natra *n);

/* Does the same after it has freed the slots that are in no record, which
 * happens if somebody removes the pins of an attachment by hand. */
int engine_gc(struct natra *n);

#endif
