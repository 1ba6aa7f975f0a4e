/* SPDX-License-Identifier: BSD-2-Clause */
/* Which pods' removal still needs a plugin. */
#pragma once

#include "state.h"

/* Says which result in libcni's cache has a list that calls this plugin, for the
 * caller to free; NULL: none. One that cannot be read counts, too. */
char *use_find(const struct install *i, const char *type);
