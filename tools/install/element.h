/* SPDX-License-Identifier: BSD-2-Clause */
/* natra's element in a list of plugins. */
#pragma once

#include <stdbool.h>

#include <cjson/cJSON.h>

/* The key that marks an element which an installer wrote. The plugin ignores
 * it. */
#define ELEMENT_MARK "natra.io/installed-by"

/* Returns the content of a drop-in: the element, with each key in a line of its
 * own. The caller frees it. */
char *element_file(const cJSON *conf);
/* Both return natra's element with the keys of `conf`, which may be NULL.
 * `replaces` is the element of the bandwidth plugin that it replaces, whose
 * limits it keeps; NULL if there is none. The caller frees the result. */
char *element_text(const cJSON *conf, const cJSON *replaces);
cJSON *element_json(const cJSON *conf, const cJSON *replaces);

bool element_is_marked(const cJSON *element);
/* Returns whether an element calls the plugin of this name. */
bool element_has_type(const cJSON *element, const char *type);
