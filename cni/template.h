/* SPDX-License-Identifier: BSD-2-Clause */
/* The name of a pod's group, which may have "{namespace}" and "{annotation:KEY}". */
#ifndef NATRA_CNI_TEMPLATE_H
#define NATRA_CNI_TEMPLATE_H

#include <natra/natra.h>

#include "failure.h"
#include "../tools/common/annotations.h"

struct template_name {
	char text[NATRA_GROUP_NAME_MAX + 1];
	size_t len;
};

/* Refuses braces that are neither of the two. */
int template_check(const char *name, struct failure *failure);

/* Returns whether a name that template_check accepts has an annotation in it. */
bool template_has_annotation(const char *name);

/* Puts in what a pod ("<namespace>/<pod>", or "") with these annotations has. Returns 0; -ENOENT if it lacks one of them; -ENAMETOOLONG. */
int template_expand(const char *template, const char *pod,
		    const struct natra_annotations *annotations,
		    struct template_name *ret);

#endif
