/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the annotations of a pod for programs that hear of pods by other ways than the
 * plugin does. */
#ifndef NATRACTL_CALL_ANNOTATIONS_H
#define NATRACTL_CALL_ANNOTATIONS_H

#include "call_read.h"

/* Puts what the request's "annotations" ask for into a policy that has its rates already,
 * as far as the list "allowAnnotations" names them, and makes the JSON of that policy. With
 * "continue" a bad value is left out, and `log_fn` gets the reason; else the result is
 * -EINVAL, with the text in the request. */
int call_annotations(struct request *request, struct natra *n,
		     const struct natra_policy *policy, natra_log_fn log_fn,
		     cJSON **ret);

#endif
