/* SPDX-License-Identifier: BSD-2-Clause */
/* An order on its way to the record. */
#ifndef NATRA_ATTACH_ORDER_H
#define NATRA_ATTACH_ORDER_H

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
	bool keeps_half; /* of lists that an interrupted change has left */
	struct scene scene;
};

/* Returns a record of the order, of nothing that is attached yet. */
struct record order_record(const struct order *order);
/* Gives a record the names of the order, which may have changed. */
void order_set_names(struct record *record, const struct order *order);
void order_set_link(struct record_link *link, const struct link_info *info,
		    const struct netns_id *netns);
/* Returns whether the pod's interface on record is that of the scene. */
bool order_is_for(const struct record *record, const struct scene *scene);

/*
 * Looks for what the directory's id has already. An id stays with its interface while that exists:
 * another one is refused, see identity_check; so is one in another namespace. Returns 1 if there
 * is something, of any ABI, 0 if not, or -errno.
 */
int order_look_before(struct natra *n, const struct pin_dir *dir,
		      const struct scene *scene, struct pin_gen *ret_before);
/* Lets the new generation count from now on, or undoes it. Processes in the pod may have changed the
 * interface since order_look_before, if there is a generation before (NULL: none): then it returns
 * -EBADE, and until that is sure, the one before counts, also if this process is killed. */
int order_complete(struct natra *n, const struct order *order,
		   const struct pin_gen *before, struct pin_gen *gen);

#endif
