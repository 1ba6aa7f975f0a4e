/* SPDX-License-Identifier: BSD-2-Clause */
/* A plan on paper. */
#pragma once

#include <install.h>

#include "json.h"

/* What is done about one file, and, with `whole`, how its lines change. */
void install_show_change(const struct install_change *change, bool whole);
cJSON *install_change_json(const struct install_change *change);
