/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of all attachments. */
#ifndef NATRA_API_LIST_H
#define NATRA_API_LIST_H

#include "kernel/netns_find.h"

/* An attachment, and where its interface has to be looked for. All of them are
 * read before anything is done with them. */
struct attachment {
	struct natra_info info;
	struct netns_lookup lookup;
};

struct attachments {
	struct natra *n;
	struct attachment *list;
	size_t len;
	bool skip_errors; /* leave out what cannot be read */
};

/* Reads all attachments and sorts them by their ids. The index is made after
 * they were read, so that a namespace which is not in it is gone. The caller
 * frees all->list, also after an error. */
int read_attachments(struct attachments *all, struct netns_index **ret_index);

#endif
