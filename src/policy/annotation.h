/* SPDX-License-Identifier: BSD-2-Clause */
/* What a pod asks for by its annotations, as far as it may. */
#ifndef NATRA_POLICY_ANNOTATION_H
#define NATRA_POLICY_ANNOTATION_H

#include "base/handle.h"

/* Does what natra_policy_annotate does, for structs of this version's size. */
int policy_annotate(struct natra *n, struct natra_policy *policy,
		    const struct natra_annotations *asked,
		    struct natra_class **ret_classes);

#endif
