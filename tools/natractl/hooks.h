/* SPDX-License-Identifier: BSD-2-Clause */
/* What else stands on the hooks of an attachment. */
#pragma once

#include <cjson/cJSON.h>

#include "cli.h"

/* Each returns 0 or a negative errno. */
int hooks_print(const struct cli *cli, const char *id);
int hooks_json(const struct cli *cli, const char *id, cJSON *array);

/* A line on standard error for each program that runs before natra's: what it
 * accepts or redirects is not limited, and only its owner knows whether it does. */
void hooks_warn(const struct cli *cli, const char *id);
