/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of `natractl call` that apply a pod's annotations to a policy. */
#ifndef NATRACTL_CALL_ANNOTATE_H
#define NATRACTL_CALL_ANNOTATE_H

#include "call_policy.h"

/* Both begin with `given`, or with nothing if that is NULL, and set *ret_result, which the caller
 * frees. They return 0 or -errno; request->error has the text, or else the library. */
int call_annotate(struct natra *n, struct request *request,
		  const struct natra_policy *given, cJSON **ret_result);
/* Besides, this gives the pod the default of its namespace and lowers it to the maximum. The
 * result is "policy", "rates", which is without what annotations other than Kubernetes' rates ask
 * for, and "note", the first of what a caller logs: no file, a wrong rate, what was lowered; or "".
 * -EBADMSG: the file of namespaces cannot be read, or is not there although it has to be. */
int call_annotate_pod(struct natra *n, struct request *request,
		      const struct natra_policy *given, cJSON **ret_result);

#endif
