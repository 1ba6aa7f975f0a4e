/* SPDX-License-Identifier: BSD-2-Clause */
/* Properties that several modes share. natractl doctor reads this, too. */
#ifndef NATRA_POLICY_MODE_H
#define NATRA_POLICY_MODE_H

#include <stdbool.h>

#include <natra/natra.h>

/* Returns whether the programs are on the node's side of the veth, not in the pod. */
static inline bool mode_is_hostside(enum natra_attach_mode mode)
{
	return mode == NATRA_ATTACH_MODE_TCX_HOSTSIDE ||
	       mode == NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;
}

#endif
