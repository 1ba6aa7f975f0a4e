/* SPDX-License-Identifier: BSD-2-Clause */
/* What libcni takes for a list and for an element of one. A text that its version 1.1 or
 * 1.3 refuses, or reads in another way than natra does, is refused here with the reason.
 * tests/install/libcni.json has what both versions say to many texts. */
#ifndef NATRA_INSTALL_LIBCNI_H
#define NATRA_INSTALL_LIBCNI_H

#include <stdbool.h>

#include <cjson/cJSON.h>

/* Reads a text that is one object. Returns NULL if it is none, with the reason in
 * *ret_wrong, a text that the caller frees. */
cJSON *libcni_parse(const char *text, char **ret_wrong);

/* These return why libcni refuses it, in a text that the caller frees; NULL if it does
 * not. The list is that of a .conflist, the element that of a .conf, or one of a list. */
char *libcni_list_wrong(const cJSON *list);
char *libcni_element_wrong(const cJSON *element);

/* Returns the version that libcni 1.3 chooses from a list's key cniVersions, in a list
 * that is right; NULL if the list has none there. */
const char *libcni_newest(const cJSON *list);

#endif
