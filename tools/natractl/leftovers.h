/* SPDX-License-Identifier: BSD-2-Clause */
/* What upstream's bandwidth plugin left beside an attachment. */
#pragma once

#include <stdio.h>

#include "cli.h"
#include "json.h"

bool leftovers_any(const struct natra_leftovers *leftovers);
/* "tbf and redirect to bwp0123456789ab on veth1", without a newline. */
void leftovers_print(FILE *file, const struct natra_leftovers *leftovers);
cJSON *leftovers_json(const struct natra_leftovers *leftovers);
