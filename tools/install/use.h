/* SPDX-License-Identifier: BSD-2-Clause */
/* The uses that a plugin still has: drop-ins of others name it, and pods need it for
 * their removal. */
#ifndef NATRA_INSTALL_USE_H
#define NATRA_INSTALL_USE_H

#include "plan.h"

/* Says which result in libcni's caches has a list that calls this plugin, in a
 * text that the caller frees; returns NULL if none has. It warns of results that
 * cannot be read. */
char *use_find(const struct install *i, struct install_plan *plan,
	       const char *type);
/* Says which list names this plugin, apart from natra's own ones, in a text that the
 * caller frees; returns NULL if none does. */
char *use_find_list(struct install *i, const struct lists *lists,
		    const char *type);
/* Says which list of Multus' delegates to one of natra's own by its path, in a text that
 * the caller frees; *ret_file is that file's name. Returns NULL if none does. */
char *use_find_delegation(struct install *i, const struct lists *lists,
			  const char **ret_file);
/* Says which drop-in calls this plugin, apart from those that the plan removes,
 * in a text that the caller frees; returns NULL if none does. */
char *use_find_dropin(const struct install *i, const struct install_plan *plan,
		      const char *type);

#endif
