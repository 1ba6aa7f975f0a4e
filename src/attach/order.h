/* SPDX-License-Identifier: BSD-2-Clause */
/* An order on its way to the record. */
#ifndef NATRA_ATTACH_ORDER_H
#define NATRA_ATTACH_ORDER_H

#include "attach/scene.h"
#include "policy/subnets.h"
#include "state/record.h"

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

/* Returns a record of the order, of nothing that is attached yet. */
struct record order_record(const struct order *order);
/* Gives a record the names of the order, which may have changed. */
void order_set_names(struct record *record, const struct order *order);
void order_set_link(struct record_link *link, const struct link_info *info,
		    const struct netns_id *netns);
/* Returns whether the pod's interface on record is that of the scene. */
bool order_is_for(const struct record *record, const struct scene *scene);

#endif
