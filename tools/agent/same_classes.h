/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares the classes of an attachment with those that it should have. natra_check also
 * fails for what has nothing to do with classes. */
#ifndef NATRA_AGENT_SAME_CLASSES_H
#define NATRA_AGENT_SAME_CLASSES_H

#include <natra/natra.h>

/* Returns 1 if they are the same, with the same names in the same order; 0; or -errno. */
int same_classes(struct natra *n, const char *id,
		 const struct natra_policy *wanted);

#endif
