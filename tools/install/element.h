/* SPDX-License-Identifier: BSD-2-Clause */
/* natra's element in a list of plugins, and how it gets into the text of one. */
#ifndef NATRA_INSTALL_ELEMENT_H
#define NATRA_INSTALL_ELEMENT_H

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

/*
 * All bytes of the list but the element stay as they are, and with them the keys,
 * the numbers and the order that somebody else wrote.
 *
 * Returns `text`, a valid list, with `element`, the text of natra's element, in
 * the place of element number `at` of its plugins, or behind the last one if
 * `at` is negative. The caller frees it. Returns NULL if there is not exactly
 * one key "plugins".
 */
char *splice_list(const char *text, const char *element, int at);
/* Returns a list made of a configuration of one plugin and natra's element. The
 * caller frees it. */
char *splice_single(const char *text, const char *name, const char *version,
		    const char *element);

#endif
