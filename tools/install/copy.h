/* SPDX-License-Identifier: BSD-2-Clause */
/* natra's copy of a list, into which other installers may write, too: Istio's and Linkerd's
 * append their plugin to the list that the runtime uses, whosever it is. */
#ifndef NATRA_INSTALL_COPY_H
#define NATRA_INSTALL_COPY_H

#include "lists.h"

/* Returns the text of the copy of a list with natra's element, which the caller frees; NULL
 * if natra cannot be added. `present`, unless it is NULL, is the copy that is there: its
 * text is returned if it has all that the copy should have and only guests beside; if not,
 * the guests are taken over. */
char *copy_make(const struct install *i, const struct list *primary,
		const struct list *present);
/* Returns the types of plugins in a copy that its network's own list lacks, so that they go
 * with the copy; NULL if there are none. The caller frees the text. */
char *copy_guests(const struct lists *lists, const struct list *copy);
/* Returns whether an element of a copy is a guest. `is_behind` says that it is behind
 * natra's and all of the original list. */
bool copy_is_guest(const cJSON *element, bool is_behind);

#endif
