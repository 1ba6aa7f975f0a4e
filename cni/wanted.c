/* SPDX-License-Identifier: BSD-2-Clause */
#include "wanted.h"

#include "../src/policy/fields.h"
#include "bandwidth.h"
#include "classes.h"
#include "groups.h"

int wanted_read_keys(struct settings *ret, const cJSON *keys,
		     const struct asker *asker, struct natra *n,
		     struct failure *failure)
{
	int r = settings_read(ret, keys, n, failure);

	if (r == 0)
		r = bandwidth_read(ret, keys, asker, n, failure);
	if (r == 0)
		r = groups_read(ret, keys, failure);
	return r ? r : classes_read(ret, keys, n, failure);
}

static void lower(uint64_t *rate, uint64_t ceiling)
{
	if (ceiling && (!*rate || *rate > ceiling))
		*rate = ceiling;
}

/* Puts what the pod asks for by its annotations into the policy. */
static int annotate(struct settings *s, const struct asker *asker,
		    struct natra *n, struct failure *failure)
{
	const uint64_t in = s->policy.ingress_rate_bits_per_sec;
	const uint64_t out = s->policy.egress_rate_bits_per_sec;
	struct natra_annotations asked = asker->annotations;
	int r;

	asked.sz = sizeof(asked);
	asked.allowed = s->allowed;
	asked.allowed_len = s->allowed_len;
	asked.skip_bad = s->continue_on_error;
	s->plain = s->policy;
	policy_fields_drop_alone(&s->plain);
	r = natra_policy_annotate(n, &s->policy, &asked, &s->asked);
	if (r == 0 && s->precedence == PRECEDENCE_LOWEST) {
		lower(&s->policy.ingress_rate_bits_per_sec, in);
		lower(&s->policy.egress_rate_bits_per_sec, out);
	}
	return r < 0 ? failure_of_natra(failure, n, r, CNI_BAD_CONFIG) : 0;
}

int wanted_read(struct settings *ret, const cJSON *keys,
		const struct asker *asker, struct natra *n, struct log *log,
		struct failure *failure)
{
	int r = wanted_read_keys(ret, keys, asker, n, failure);

	if (r)
		return r;
	if (asker->on_error != ON_ERROR_AS_SET)
		ret->continue_on_error = asker->on_error == ON_ERROR_CONTINUE;
	r = groups_join(ret, asker, n, log, failure);
	return r ? r : annotate(ret, asker, n, failure);
}
