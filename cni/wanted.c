/* SPDX-License-Identifier: BSD-2-Clause */
#include "wanted.h"

#include "../src/policy/fields.h"
#include "annotations.h"
#include "bandwidth.h"
#include "classes.h"
#include "groups.h"

int wanted_read_keys(struct settings *ret, const struct conf *conf,
		     struct natra *n, struct failure *failure)
{
	int r = settings_read(ret, conf, n, failure);

	if (r == 0)
		r = bandwidth_read(ret, conf, n, failure);
	if (r == 0)
		r = groups_read(ret, conf, failure);
	return r ? r : classes_read(ret, conf, n, failure);
}

static int read_all(struct settings *ret, const struct conf *conf,
		    const char *pod, bool only_looks, struct natra *n,
		    struct log *log, struct failure *failure)
{
	int r = wanted_read_keys(ret, conf, n, failure);

	if (r)
		return r;
	ret->only_looks = only_looks;
	ret->keys = ret->policy;
	policy_fields_drop_alone(&ret->policy);
	r = annotations_read(&ret->policy, ret, conf, log, failure);
	if (r == 0)
		r = groups_join(ret, conf, pod, n, log, failure);
	/* Whether there may be classes depends on the group. */
	return r ? r : classes_read_annotation(ret, conf, n, log, failure);
}

int wanted_read(struct settings *ret, const struct conf *conf, const char *pod,
		struct natra *n, struct log *log, struct failure *failure)
{
	return read_all(ret, conf, pod, false, n, log, failure);
}

int wanted_look(struct settings *ret, const struct conf *conf, const char *pod,
		struct natra *n, struct log *log, struct failure *failure)
{
	return read_all(ret, conf, pod, true, n, log, failure);
}

bool wanted_limits(const struct natra_policy *policy)
{
	for (size_t i = 0; i < policy->classes_len; i++) {
		if (policy->classes[i].ingress_rate_bits_per_sec ||
		    policy->classes[i].egress_rate_bits_per_sec)
			return true;
	}
	return policy->ingress_rate_bits_per_sec ||
	       policy->egress_rate_bits_per_sec;
}
