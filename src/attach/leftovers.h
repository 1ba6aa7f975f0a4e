/* SPDX-License-Identifier: BSD-2-Clause */
/* What upstream's bandwidth plugin left beside an attachment. */
#ifndef NATRA_ATTACH_LEFTOVERS_H
#define NATRA_ATTACH_LEFTOVERS_H

#include "kernel/link.h"

/* Logs a warning if it left limits on the host side of the interface `pod` in the
 * namespace pod_fd (-1: the caller's). */
void leftovers_warn(struct natra *n, const struct link_info *pod, int pod_fd);

#endif
