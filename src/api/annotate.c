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
	int r = struct_in(n, "policy", &p, sizeof(p), sizeof(p), policy);

	if (r == 0)
		r = struct_in(n, "annotations", &a, FIRST_ANNOTATIONS,
			      sizeof(a), asked);
	if (r < 0)
		return r;
	if (!ret_classes)
		return refuse(n, -EINVAL, "ret_classes: missing");
	if ((!a.annotations && a.annotations_len) ||
	    (!a.allowed && a.allowed_len))
		return refuse(n, -EINVAL, "annotations: a list is missing");
	r = policy_annotate(n, &p, &a, ret_classes);
	return r < 0 ? r
		     : struct_out(n, "policy", policy, &p, sizeof(p),
				  sizeof(p));
}

int natra_policy_annotate(struct natra *n, struct natra_policy *policy,
			  const struct natra_annotations *annotations,
			  struct natra_class **ret_classes)
{
	if (!n)
		return -EINVAL;
	return finish(n, annotate(n, policy, annotations, ret_classes));
}
