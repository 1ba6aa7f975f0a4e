/* SPDX-License-Identifier: BSD-2-Clause */
/* The things beside natra that affect an attachment: other programs on its
 * hooks, and what the bandwidth plugin left on its interface. */
#ifndef NATRACTL_NEIGHBOURS_H
#define NATRACTL_NEIGHBOURS_H

#include <stdio.h>

#include "cli.h"
#include "json.h"

/* Both show the programs on its hooks. They return 0 or -errno. */
int hooks_print(const struct cli *cli, const char *id);
int hooks_json(const struct cli *cli, const char *id, cJSON *array);

/* Prints a line on standard error for each program that runs before natra's: what it
 * accepts or redirects is not limited, and only its owner knows whether it does. */
void hooks_warn(const struct cli *cli, const char *id);

/* Returns whether the bandwidth plugin left anything. */
bool leftovers_any(const struct natra_leftovers *leftovers);
/* Prints "tbf and redirect to bwp0123456789ab on veth1", or htb, without a newline. */
void leftovers_print(FILE *file, const struct natra_leftovers *leftovers);
cJSON *leftovers_json(const struct natra_leftovers *leftovers);

#endif
