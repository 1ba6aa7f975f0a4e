/* SPDX-License-Identifier: BSD-2-Clause */
/* What still needs a plugin: the drop-ins of others, and pods for their removal. */
#pragma once

#include "state.h"

/* Says which result in libcni's cache has a list that calls this plugin, for the
 * caller to free; NULL: none. One that cannot be read counts, too. */
char *use_find(const struct install *i, const char *type);
/* Says which drop-in calls this plugin, but for those that the plan removes; for
 * the caller to free; NULL: none. */
char *use_find_dropin(const struct install *i, const struct install_plan *plan,
		      const char *type);
