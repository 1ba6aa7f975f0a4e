/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NATRACTL_JSON_H
#define NATRACTL_JSON_H

#include "../common/json_write.h"

/* Both print `json` and free it. */
void json_print(cJSON *json);
void json_print_line(cJSON *json);

#endif
