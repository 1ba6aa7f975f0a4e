/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "api/structs.h"
#include "policy/annotation.h"

static int annotate(struct natra *n, struct natra_policy *policy,
		    const struct natra_annotations *asked,
		    struct natra_class **ret_classes)
{
	struct natra_annotations a;
	struct natra_policy p;
	int r = struct_in(n, "policy", &p, EXTENT_POLICY, policy);

	if (r == 0)
		r = struct_in(n, "annotations", &a, EXTENT_ANNOTATIONS, asked);
	if (r < 0)
		return r;
	if (!ret_classes)
		return refuse(n, -EINVAL, "ret_classes: missing");
	if ((!a.annotations && a.annotations_len) ||
	    (!a.allowed && a.allowed_len))
		return refuse(n, -EINVAL, "annotations: a list is missing");
	r = policy_annotate(n, &p, &a, ret_classes);
	return r < 0 ? r : struct_out(n, "policy", policy, EXTENT_POLICY, &p);
}

int natra_policy_annotate(struct natra *n, struct natra_policy *policy,
			  const struct natra_annotations *annotations,
			  struct natra_class **ret_classes)
{
	if (!begin_call(n))
		return -EINVAL;
	return finish(n, annotate(n, policy, annotations, ret_classes));
}
