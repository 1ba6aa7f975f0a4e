/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tools write as JSON. */
#ifndef NATRA_COMMON_JSON_WRITE_H
#define NATRA_COMMON_JSON_WRITE_H

#include <stdint.h>

#include <cjson/cJSON.h>

/* Adds a number exactly, while cJSON's numbers are doubles. */
void json_add_u64(cJSON *object, const char *key, uint64_t number);
/* Adds a string. Bytes that are not UTF-8 become U+FFFD. */
void json_add_text(cJSON *object, const char *key, const char *text);

#endif
