/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef NATRACTL_JSON_H
#define NATRACTL_JSON_H

#include <stdint.h>

#include <cjson/cJSON.h>

/* Adds a number exactly, while cJSON's numbers are doubles. */
void json_add_u64(cJSON *object, const char *key, uint64_t number);
/* Adds a string. Bytes that are not UTF-8 become U+FFFD. */
void json_add_text(cJSON *object, const char *key, const char *text);
/* Both print `json` and free it. */
void json_print(cJSON *json);
void json_print_line(cJSON *json);

#endif
