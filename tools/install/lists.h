/* SPDX-License-Identifier: BSD-2-Clause */
/* The lists in a runtime's configuration directory, and which of them are
 * natra's own. */
#ifndef NATRA_INSTALL_LISTS_H
#define NATRA_INSTALL_LISTS_H

#include "state.h"

struct list {
	char *file;
	char *text;           /* NULL: it is not readable text */
	cJSON *json;          /* NULL: it is not JSON */
	char *wrong;          /* why libcni refuses it; NULL: it does not */
	const cJSON *plugins; /* its elements; NULL: it has none */
	const char *name;     /* the network's name; NULL: it has none */
	const char *version;  /* its cniVersion; NULL: it has none */
	const char
		*newest; /* what libcni 1.3 takes in its place; NULL: nothing */
	bool is_chain;   /* a .conflist, else the configuration of one plugin */
	bool is_ours;
	bool is_multus;
};

/* All lists, in the order in which a runtime looks at them. */
struct lists {
	struct list *items;
	size_t len, size;
	char *renamed; /* by Cilium, the first such file; NULL: there is none */
};

int lists_read(struct install *i, const struct dir *dir, struct lists *ret);
void lists_free(struct lists *lists);
#define cleanup_lists __attribute__((cleanup(lists_free)))

/* Returns whether the list is of this network, which may be NULL for any. */
bool list_is_of(const struct list *list, const char *network);
/* Returns the network whose list the runtime's configuration wants; NULL if it takes the
 * first list, or that of Multus. */
const char *lists_network(const struct install *i, const struct lists *lists);
/* Returns the first list that is not natra's, of this network; NULL if there is
 * none. With `network` NULL it returns one of any network, but not Multus' own
 * list, which itself names the network of the pods. */
const struct list *lists_primary(const struct lists *lists,
				 const char *network);
/* Returns the first list that is not natra's and not JSON, perhaps because it
 * is just being written, so that its network is unknown. NULL if there is
 * none. */
const struct list *lists_partial(const struct lists *lists);
/* Returns the list that the runtime takes where natra has none, which may be that of Multus;
 * NULL if there is none. */
const struct list *lists_first(const struct install *i,
			       const struct lists *lists);
/* Returns whether one of them is natra's. */
bool lists_have_ours(const struct lists *lists);
/* Returns whether a list is an administrator's copy of a later list of the same
 * network, with plugins added, such as Istio keeps one. */
bool lists_is_wrapper(const struct lists *lists, const struct list *list);
/* Returns the name of natra's copy of a list. The caller frees it. */
char *list_copy_name(const struct list *list);
/* Returns how often the list calls the plugin of this type. *ret_at, unless it
 * is NULL, gets the number of the last such element. */
size_t list_count(const struct list *list, const char *type, int *ret_at);
/* Returns whether a key of the list says true, as a boolean or as a text. */
bool list_says_true(const struct list *list, const char *key);
/* Returns the first list that is not natra's own and names the plugin of this
 * type, perhaps in a list inside of it, as that of Multus has them; NULL if there is
 * none. */
const struct list *lists_naming(const struct lists *lists, const char *type);

#endif
