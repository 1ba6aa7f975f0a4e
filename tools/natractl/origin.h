/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the rates of an attachment are from, as far as its pod's namespace has a say. */
#ifndef NATRA_NATRACTL_ORIGIN_H
#define NATRA_NATRACTL_ORIGIN_H

#include <natra/natra.h>

/* Returns "maximum" or "default" if the rate of the direction is what NAMESPACES_FILE has for the
 * namespace in the label; else "". The file is read once. */
const char *origin_of(const struct natra_info *info,
		      enum natra_direction direction);

#endif
