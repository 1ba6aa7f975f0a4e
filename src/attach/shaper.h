/* SPDX-License-Identifier: BSD-2-Clause */
/* The story of an attachment: what is put where, in which order, and how it is
 * undone. No system calls of its own. */
#ifndef NATRA_ATTACH_SHAPER_H
#define NATRA_ATTACH_SHAPER_H

#include "attach/scene.h"
#include "state/pin.h"

struct request {
	const char *id;
	const char *network;
	const char *label;
	const struct natra_policy *policy;
	const struct subnets *subnets; /* those of the policy */
};

/* Create or replace, under the lock of `key`. */
int shaper_attach(struct natra *n, const struct pin_key *key,
		  const struct scene *scene, const struct request *request,
		  struct pin_gen *ret_gen);

/* Only the record that it should be there, unless it is. */
int shaper_record(struct natra *n, const struct pin_key *key,
		  const struct scene *scene, const struct request *request,
		  const char *reason);

#endif
