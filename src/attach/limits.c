/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/limits.h"

#include <errno.h>

#include "attach/gso.h"
#include "state/engine.h"
#include "util/cleanup.h"
#include "util/str.h"

bool limits_cover(const struct meta *meta, const struct natra_policy *policy)
{
	bool in = meta->half[HALF_INGRESS].hook || meta->half[HALF_PACE].hook;
	bool out = meta->half[HALF_EGRESS].hook;

	return (in || !policy->ingress_rate_bits_per_sec) &&
	       (out || !policy->egress_rate_bits_per_sec);
}

struct limit_change {
	struct slot slot; /* config_fd -1: this half is not used */
	struct natra_limits before;
	struct natra_limits after;
};

/* Everything that can be read is read before anything is written. */
static int prepare_change(struct natra *n, const struct pin_gen *gen,
			  enum half half, const struct natra_policy *policy,
			  struct limit_change *change)
{
	int r;

	if (!gen->meta.half[half].hook)
		return 0;
	change->after =
		policy_limits(policy, half, meta_is_paced(&gen->meta, half));
	r = engine_open_slot(n, &gen->meta.slot[half], &change->slot);
	if (r == -ENOENT)
		return refuse(n, -ENOENT, "the limits of '%s' are gone",
			      gen->meta.id);
	if (r < 0)
		return r;
	return slot_get_limits(n, &change->slot, &change->before);
}

static int write_changes(struct natra *n, struct pin_gen *gen,
			 const struct limit_change *changes,
			 const struct natra_policy *policy)
{
	struct meta before = gen->meta;
	char error[HANDLE_ERROR_MAX];
	int done = 0;
	int r = 0;

	for (; done < HALF_MAX && r == 0; done++) {
		if (changes[done].slot.config_fd >= 0)
			r = slot_set_limits(n, &changes[done].slot,
					    &changes[done].after);
	}
	if (r == 0) {
		meta_set_policy(&gen->meta, policy);
		for (int i = 0; i < HALF_MAX; i++)
			gen->meta.limits[i] = changes[i].after;
		if (gen->meta.edt)
			gen->meta.gso_segs = policy_gso_segs(policy);
		r = pin_store_meta(n, gen);
	}
	if (r == 0) {
		if (gen->meta.gso_segs != before.gso_segs)
			gso_change_in(n, &gen->meta.pod, before.gso_segs,
				      gen->meta.gso_segs);
		return 0;
	}
	/* All or nothing; and the error to tell is the first one. */
	(void)str_copy(error, sizeof(error), last_error(n));
	gen->meta = before;
	while (done-- > 0) {
		if (changes[done].slot.config_fd >= 0)
			(void)slot_set_limits(n, &changes[done].slot,
					      &changes[done].before);
	}
	(void)str_copy(n->error, sizeof(n->error), error);
	return r;
}

int limits_set(struct natra *n, struct pin_gen *gen,
	       const struct natra_policy *policy)
{
	struct limit_change changes[HALF_MAX] = {
		{.slot = SLOT_INIT},
		{.slot = SLOT_INIT},
		{.slot = SLOT_INIT},
	};
	int r = 0;

	for (int i = 0; i < HALF_MAX && r == 0; i++)
		r = prepare_change(n, gen, (enum half)i, policy, &changes[i]);
	if (r == 0)
		r = write_changes(n, gen, changes, policy);
	for (int i = 0; i < HALF_MAX; i++)
		slot_close(&changes[i].slot);
	return r;
}
