/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the configuration of a runtime, which is TOML: tables, arrays of tables, dotted
 * keys, texts, numbers, booleans, arrays and inline tables. What it does not know, such
 * as \u in a text, it refuses with the line. */
#ifndef NATRA_INSTALL_TOML_H
#define NATRA_INSTALL_TOML_H

#include <stddef.h>

#include <cjson/cJSON.h>

/* Returns an object that the caller deletes; NULL if the text cannot be read, with the
 * number of the line in *ret_line. A date becomes a text. */
cJSON *toml_read(const char *text, size_t *ret_line);

#endif
