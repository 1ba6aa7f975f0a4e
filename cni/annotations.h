/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what a pod asks for by its annotations, as far as the operator allows
 * it. */
#ifndef NATRA_CNI_ANNOTATIONS_H
#define NATRA_CNI_ANNOTATIONS_H

#include "../tools/common/log.h"
#include "settings.h"

/* Finds the pod's annotations; *ret is NULL if the runtime passes none on. */
int annotations_find(const struct conf *conf, const cJSON **ret,
		     struct failure *failure);

/* Puts the pod's annotations into the policy, which has its rates already. A
 * bad value is an error; with "onError": "continue" it is logged and ignored. */
int annotations_read(struct natra_policy *policy,
		     const struct settings *settings, const struct conf *conf,
		     struct log *log, struct failure *failure);

#endif
