/* SPDX-License-Identifier: BSD-2-Clause */
/* A list's text with natra's element in it. All other bytes stay, so that keys,
 * numbers and the order that somebody else wrote stay, too. */
#pragma once

/* `text` is a valid list and `element` the text of natra's element. In the place
 * of element number `at` of its plugins, or behind the last one if `at` is
 * negative. The caller frees it; NULL: there is not exactly one key "plugins". */
char *splice_list(const char *text, const char *element, int at);
/* A list out of a configuration of one plugin. */
char *splice_single(const char *text, const char *name, const char *version,
		    const char *element);
