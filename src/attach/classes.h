/* SPDX-License-Identifier: BSD-2-Clause */
/* These functions give the classes of an attachment to its legs and its pins. */
#ifndef NATRA_ATTACH_CLASSES_H
#define NATRA_ATTACH_CLASSES_H

#include "state/pin.h"

/* Gets the limits of each slot of a leg, as many as record_slots() says: its own, and
 * those of its classes. `group` is the number of the policy's group. */
void classes_leg_limits(const struct record *record, enum leg leg,
			uint32_t group, const struct natra_policy *policy,
			const struct subnets *subnets,
			struct natra_limits *ret_limits);

/* Pins the classes of a generation and the map of all its subnets, if it has any.
 * `classes` comes with the limits. */
int classes_pin(struct natra *n, const struct pin_gen *gen,
		const struct subnets *subnets, struct record_classes *classes,
		int trie_fd);

#endif
