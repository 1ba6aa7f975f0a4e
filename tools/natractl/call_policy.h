/* SPDX-License-Identifier: BSD-2-Clause */
/* The library's structs in a call that is written in JSON, with the names of their
 * members. */
#ifndef NATRACTL_CALL_POLICY_H
#define NATRACTL_CALL_POLICY_H

#include "call_read.h"

/* Both set *ret to `target` or `policy` if the request has one, and return 0, or -EINVAL
 * with the text in request->error. */
int call_read_target(struct request *request, struct natra_target *target,
		     const struct natra_target **ret);
int call_read_policy(struct request *request, struct natra_policy *policy,
		     const struct natra_policy **ret);
/* Reads the arguments of natra_policy_annotate beside the policy. */
int call_read_annotations(struct request *request,
			  struct natra_annotations *ret);
/* Reads "group", "group_is_automatic" and "automatic_group", to which the policy then
 * points. */
int call_read_group(struct request *request, const cJSON *policy,
		    struct natra_policy *ret);
void call_policy_free(struct request *request);

#endif
