/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts natra's element into the text of a list. */
#ifndef NATRA_INSTALL_SPLICE_H
#define NATRA_INSTALL_SPLICE_H

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
