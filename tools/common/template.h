/* SPDX-License-Identifier: BSD-2-Clause */
/* The name of a pod's group, which may have "{namespace}" and "{annotation:KEY}". */
#ifndef NATRA_COMMON_TEMPLATE_H
#define NATRA_COMMON_TEMPLATE_H

#include "annotations.h"

struct template_name {
	char text[NATRA_GROUP_NAME_MAX + 1];
	size_t len;
};

/* Returns what is wrong with a name: braces that are neither of the two; or NULL. The other
 * functions take names in which nothing is wrong. */
const char *template_wrong(const char *name);

/* Returns whether `does` accepts the key of an annotation in the name; NULL: each. */
bool template_has_annotation(const char *name, bool (*does)(const char *key));

/* Returns whether pods of two namespaces never have the same name by what their annotations
 * are: then the namespace can be told from the name. */
bool template_keeps_apart(const char *name);

/* Puts in what a pod ("<namespace>/<pod>", or "") with these annotations has. Returns 0; -ENOENT if it lacks one of them; -ENAMETOOLONG. */
int template_expand(const char *template, const char *pod,
		    const struct natra_annotations *annotations,
		    struct template_name *ret);

#endif
