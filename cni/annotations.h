/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what a pod asks for by its annotations, as far as the operator allows
 * it. */
#ifndef NATRA_CNI_ANNOTATIONS_H
#define NATRA_CNI_ANNOTATIONS_H

#include "log.h"
#include "settings.h"

/* Puts the pod's annotations into the policy, which has its rates already. A
 * bad value is an error; with "onError": "continue" it is logged and ignored. */
int annotations_read(struct natra_policy *policy,
		     const struct settings *settings, const struct conf *conf,
		     struct log *log, struct failure *failure);

#endif
