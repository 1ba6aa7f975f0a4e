/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of an attach: what is put where, in which order, and how it is undone. This
 * file makes no system calls of its own. */
#ifndef NATRA_ATTACH_SHAPER_H
#define NATRA_ATTACH_SHAPER_H

#include "attach/scene.h"
#include "policy/subnets.h"
#include "state/pin.h"

/* A policy that is to be attached, and the interface to which it is. */
struct order {
	const char *id;
	const char *network; /* may be NULL */
	const char *label;   /* may be NULL */
	/* The policy has no lists of subnets, only their lengths. */
	struct natra_policy policy;
	struct subnets subnets; /* the caller of shaper_attach frees them */
	struct scene scene;
};

/* Carries an order out: attaches, or changes what the id has attached already. The
 * directory of the id is locked. */
int shaper_attach(struct natra *n, const struct pin_dir *dir,
		  const struct order *order, struct pin_gen *ret_gen);

/* Writes a record which says that the attachment should be there and why it is
 * not. Does nothing if it is there. */
int shaper_record(struct natra *n, const struct pin_dir *dir,
		  const struct order *order, const char *reason);

#endif
