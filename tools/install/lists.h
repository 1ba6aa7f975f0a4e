/* SPDX-License-Identifier: BSD-2-Clause */
/* The lists of a runtime's configuration directory, and which of them are natra's
 * own. */
#pragma once

#include "state.h"

struct list {
	char *file;
	char *text;           /* NULL: it cannot be read as one */
	cJSON *json;          /* NULL: it is not JSON */
	const cJSON *plugins; /* elements; NULL: none */
	const char *name;     /* of the network; NULL: none */
	const char *version;  /* NULL: none */
	bool is_chain; /* a .conflist, else the configuration of one plugin */
	bool is_ours;
	bool is_multus;
};

#define LISTS_MAX 64

/* In the order in which a runtime looks at them. */
struct lists {
	struct list items[LISTS_MAX];
	size_t len;
	bool cilium_is_exclusive; /* it has renamed lists of others */
};

int lists_read(struct install *i, struct lists *ret);
void lists_free(struct lists *lists);
#define cleanup_lists __attribute__((cleanup(lists_free)))

/* The first that is not natra's; NULL: there is none. `network` NULL: of any,
 * but not Multus' own, which names the one of the pods itself. */
const struct list *lists_primary(const struct lists *lists,
				 const char *network);
/* The first that is not natra's and not JSON, perhaps because it is just being
 * written: of which network it is cannot be told. NULL: there is none. */
const struct list *lists_partial(const struct lists *lists);
/* The first list of another network plugin, Multus included. */
const struct list *lists_first(const struct lists *lists);
/* Whether it is somebody's copy of a later list of the same network, with
 * plugins added, as Istio keeps one. */
bool lists_is_wrapper(const struct lists *lists, const struct list *list);
/* How often, and where last, the list calls the plugin of this type. */
size_t list_count(const struct list *list, const char *type, int *ret_at);
/* The first list, which is not natra's own, that calls it; NULL: none. */
const struct list *lists_naming(const struct lists *lists, const char *type);
