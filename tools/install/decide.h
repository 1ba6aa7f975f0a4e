/* SPDX-License-Identifier: BSD-2-Clause */
/* Which way into the chain, and what speaks against the others. */
#pragma once

#include "lists.h"

struct choice {
	enum install_mode mode; /* never INSTALL_AUTO */
	char *reason;           /* the caller frees it */
};

/* -EOPNOTSUPP: none without harm. */
int decide(struct install *i, const struct lists *lists,
	   const struct list *primary, struct choice *ret);
