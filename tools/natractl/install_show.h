/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows the changes of a plan to the user. */
#ifndef NATRACTL_INSTALL_SHOW_H
#define NATRACTL_INSTALL_SHOW_H

#include <install.h>

#include "json.h"

/* Prints what is done about one file and, with `whole`, how its lines
 * change. */
void install_show_change(const struct install_change *change, bool whole);
cJSON *install_change_json(const struct install_change *change);

#endif
