/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides by which way natra gets into the chain, and says why not by the others. */
#ifndef NATRA_INSTALL_DECIDE_H
#define NATRA_INSTALL_DECIDE_H

#include "lists.h"

struct choice {
	enum install_mode mode; /* never INSTALL_AUTO */
	char *reason;           /* the caller frees it */
};

/* Returns -EOPNOTSUPP if each way would do harm. */
int decide(struct install *i, const struct lists *lists,
	   const struct list *primary, struct choice *ret);

#endif
