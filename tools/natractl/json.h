/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <stdint.h>

#include <cjson/cJSON.h>

/* Makes cJSON end the process when memory is short, so that no caller has to
 * look for holes in what it built. */
void json_init(void);
/* Exact, where a cJSON number is a double. */
void json_add_u64(cJSON *object, const char *key, uint64_t number);
/* Bytes that are not UTF-8 become U+FFFD. */
void json_add_text(cJSON *object, const char *key, const char *text);
/* Both free `json`. */
void json_print(cJSON *json);
void json_print_line(cJSON *json);
