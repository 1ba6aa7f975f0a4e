/* SPDX-License-Identifier: BSD-2-Clause */
/* natra's plugin as a file: which one to install, what it says of itself, and
 * which file of a directory is natra's plugin. */
#ifndef NATRA_INSTALL_PLUGIN_H
#define NATRA_INSTALL_PLUGIN_H

#include "state.h"

/* Opens the request's plugin, or the one beside this program, or the one that
 * was installed with it, and asks it for the versions that it supports. */
int plugin_open(struct install *i);
/* Checks whether the plugin's ADD would accept this configuration, in a list of
 * this cniVersion. */
int plugin_check(struct install *i, const char *version, const cJSON *element);

/* Returns whether `name` is a regular file with natra's plugin in it, of any
 * version. */
bool plugin_is_natra(const struct dir *dir, const char *name);
/* Returns what else is there, such as "is a symbolic link"; NULL if it is the plugin. */
const char *plugin_wrong(const struct dir *dir, const char *name);
/* Runs the plugin `name` by hand, and gives its version, which the caller frees.
 * Returns 0 or -errno. */
int plugin_ask_version(const struct dir *dir, const char *name, char **ret);
/* Returns whether `name` is the plugin to install, byte for byte, and
 * executable. */
bool plugin_is_installed(const struct install *i, const char *name);

#endif
