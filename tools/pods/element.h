/* SPDX-License-Identifier: BSD-2-Clause */
/* The elements of a list of plugins, and natra's own. */
#ifndef NATRA_PODS_ELEMENT_H
#define NATRA_PODS_ELEMENT_H

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

/* Returns the key as natra-cni(8) writes it; NULL if natra has no such key. */
const char *element_key(const char *key);

bool element_is_marked(const cJSON *element);
/* Returns whether an element calls the plugin of this name. */
bool element_has_type(const cJSON *element, const char *type);
/* Returns whether an element does so anywhere in a list, also below Multus' key
 * "delegates", where it keeps whole lists. */
bool element_names(const cJSON *json, const char *type);
/* Returns the first element that does so in a list; NULL if there is none. */
const cJSON *element_find(const cJSON *list, const char *type);

#endif
