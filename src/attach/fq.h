/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of natra's fq, which builds may choose differently. */
#ifndef NATRA_ATTACH_FQ_H
#define NATRA_ATTACH_FQ_H

#include "state/pin.h"

/* Gives the fq of an older build the options that this build gives it, and notes
 * them in the record, which the caller writes. */
int fq_renew(struct natra *n, struct pin_gen *gen, int pod_fd);

#endif
