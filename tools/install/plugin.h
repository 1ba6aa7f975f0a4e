/* SPDX-License-Identifier: BSD-2-Clause */
/* natra's plugin as a file: which one to install, what it says of itself, and
 * which file of a directory is one. */
#pragma once

#include "state.h"

/* Opens the request's plugin, or the one beside this program, or the one that was
 * installed with it; asks for its versions and whether it can work here. */
int plugin_open(struct install *i);
/* Whether its ADD would take this configuration, for a list of this version. */
int plugin_check(struct install *i, const char *version, const cJSON *element);

/* Whether `name` is a regular file with natra's plugin in it, of any version. */
bool plugin_is_natra(const struct dir *dir, const char *name);
/* Whether `name` is the plugin to install, byte for byte, and executable. */
bool plugin_is_installed(const struct install *i, const char *name);
