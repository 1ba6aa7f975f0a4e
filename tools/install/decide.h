/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides by which way natra gets into the chain, and says why not by the others. */
#ifndef NATRA_INSTALL_DECIDE_H
#define NATRA_INSTALL_DECIDE_H

#include "lists.h"

struct choice {
	enum install_mode mode; /* never INSTALL_AUTO */
	/* The caller frees both texts, also after an error. */
	char *reason;
	char *element; /* of natra's that others have put there; NULL: none */
};

/* Returns -EOPNOTSUPP if each way would do harm. */
int decide(struct install *i, const struct lists *lists,
	   const struct list *primary, struct choice *ret);

#endif
