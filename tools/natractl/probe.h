/* SPDX-License-Identifier: BSD-2-Clause */
/* How the features of a kernel are shown. */
#ifndef NATRACTL_PROBE_H
#define NATRACTL_PROBE_H

#include <natra/natra.h>

#include "json.h"

cJSON *features_json(const struct natra_features *features);

#endif
