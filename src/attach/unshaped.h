/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that an interface has no limits. */
#ifndef NATRA_ATTACH_UNSHAPED_H
#define NATRA_ATTACH_UNSHAPED_H

#include "attach/order.h"

/* Writes a record which says that the attachment should be there and why it is
 * not. Does nothing if it is there. */
int unshaped_record(struct natra *n, const struct pin_dir *dir,
		    const struct order *order, const char *reason);

#endif
