/* SPDX-License-Identifier: BSD-2-Clause */
/* What an edit of annotations may do to the limits that a pod has: whoever may edit a pod may
 * be the one whom its limits are for. */
#ifndef NATRA_AGENT_HELD_H
#define NATRA_AGENT_HELD_H

#include "podif.h"

/* The limits that a pod has had so far: those on record, or, if none are attached, those of
 * its start. Once they are used, a wish points into them. */
struct held {
	struct natra_policy policy;
	struct wish start;
	bool has_start;
	/* The first `owned_len` are copies, which are owned. */
	struct natra_class classes[NATRA_CLASSES_MAX];
	struct natra_class *owned[NATRA_CLASSES_MAX];
	size_t owned_len;
};

/*
 * Takes out of a wish what an edit may not do by jobs->edits, so that it has what is held
 * there. `info` is what natra_query says of the pod's attachment, NULL: there is none. What
 * the configuration decides without annotations is left alone, but for rates. *ret_text says
 * what is taken out first, "": nothing is. *held is all 0 before, and held_free is needed
 * once the wish is not.
 * Returns 0 or -errno.
 */
int held_hold(struct held *held, const struct podif *podif,
	      const struct natra_info *info, struct wish *wish, char *ret_text,
	      size_t size);
void held_free(struct held *held);

#endif
