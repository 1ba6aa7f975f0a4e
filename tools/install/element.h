/* SPDX-License-Identifier: BSD-2-Clause */
/* natra's element of a list. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

/* The element has it when an installer wrote it, and the plugin ignores it. */
#define ELEMENT_MARK "natra.io/installed-by"

/* A drop-in: the element in lines of its own. The caller frees it. */
char *element_file(const cJSON *conf);
/* `conf` may be NULL. `replaces` is the element of the bandwidth plugin in whose
 * place it goes, whose limits it keeps; NULL: none. The caller frees both. */
char *element_text(const cJSON *conf, const cJSON *replaces);
cJSON *element_json(const cJSON *conf, const cJSON *replaces);

bool element_is_marked(const cJSON *element);
/* Whether it calls the plugin of this name. */
bool element_has_type(const cJSON *element, const char *type);
