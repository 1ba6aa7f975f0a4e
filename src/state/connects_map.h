/* SPDX-License-Identifier: BSD-2-Clause */
/* The maps in which the programs measure connections: a bank has one with a table
 * for each slot, and both directions of an attachment have the same table there. */
#ifndef NATRA_STATE_CONNECTS_MAP_H
#define NATRA_STATE_CONNECTS_MAP_H

#include <stdint.h>

#include "base/handle.h"

/* Makes the map of a bank, without any table. The caller owns *ret_fd. */
int connects_map_make(struct natra *n, uint32_t slots, int *ret_fd);

/* Makes the table of an attachment. The banks that it is put into keep it. */
int connects_table_make(struct natra *n, int *ret_fd);

#endif
