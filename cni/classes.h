/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the key `classes` and the annotation CLASSES_ANNOTATION: peers with limits of
 * their own. */
#ifndef NATRA_CNI_CLASSES_H
#define NATRA_CNI_CLASSES_H

#include "../tools/common/log.h"
#include "settings.h"

/* Puts them into the policy, which then points into *settings and into the
 * configuration. The policy has its subnets already. */
int classes_read(struct settings *settings, const struct conf *conf,
		 struct natra *n, struct failure *failure);

/* Puts the classes that the pod asks for in place of those, if it may. The policy is in
 * its group already. A bad value is an error; with "onError": "continue" it is logged and
 * ignored. settings_free is needed. */
int classes_read_annotation(struct settings *settings, const struct conf *conf,
			    struct natra *n, struct log *log,
			    struct failure *failure);

#endif
