/* SPDX-License-Identifier: BSD-2-Clause */
#include "hold.h"

#include <stdio.h>
#include <string.h>

#include "../../src/policy/mode.h"

enum owner { CILIUM, CALICO, AWS, OWNERS };

static const struct {
	const char *prefix;
	enum owner owner;
} prefixes[] = {
	{"cil_", CILIUM},
	{"cali_", CALICO},
	/* Its programs have no name: these are the filters'. */
	{"handle_ingress", AWS},
	{"handle_egress", AWS},
};

static const char *const names[OWNERS] = {
	[CILIUM] = "Cilium",
	[CALICO] = "Calico",
	[AWS] = "AWS's network policy agent",
};

static enum owner owner_of(const struct natra_neighbour *e)
{
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (strncmp(e->prog_name, prefixes[i].prefix,
			    strlen(prefixes[i].prefix)) == 0)
			return prefixes[i].owner;
	}
	return OWNERS;
}

static void note_owner(struct hold *hold, enum owner owner,
		       const struct natra_neighbour *e)
{
	if (hold->owner)
		return;
	hold->owner = names[owner];
	(void)snprintf(hold->program, sizeof(hold->program), "%s",
		       e->prog_name);
}

int hold_note(void *arg, const struct natra_neighbour *e)
{
	struct hold *hold = arg;
	const bool is_tcx = strcmp(e->hook, "tcx") == 0;
	const bool by_filters = hold->info->mode == NATRA_MODE_CLSACT_HOSTSIDE;
	const enum owner owner = owner_of(e);
	bool in = false, out = false, shaky = false;

	if (!mode_is_hostside(hold->info->mode))
		return 0;
	if (!e->is_on_host) {
		hold->is_in_pod |=
			e->is_ours && e->direction == NATRA_DIRECTION_INGRESS;
		return 0;
	}
	if (e->is_ours || owner == OWNERS)
		return 0;
	in = owner == CALICO || (owner == CILIUM && is_tcx);
	out = owner != AWS && is_tcx && by_filters;
	shaky = by_filters && (owner == AWS || (owner == CILIUM && !is_tcx));
	if (in || out || shaky)
		note_owner(hold, owner, e);
	hold->is_lost[NATRA_DIRECTION_INGRESS] |= in;
	hold->is_lost[NATRA_DIRECTION_EGRESS] |= out;
	hold->is_shaky |= shaky;
	return 0;
}

const char *hold_lost(const struct hold *hold)
{
	const struct natra_info *info = hold->info;
	const bool in = hold->is_lost[NATRA_DIRECTION_INGRESS] &&
			!hold->is_in_pod &&
			(info->ingress_prog_id || info->host_prog_id);
	const bool out =
		hold->is_lost[NATRA_DIRECTION_EGRESS] && info->egress_prog_id;

	if (in && out)
		return "ingress and egress";
	if (in)
		return "ingress";
	return out ? "egress" : NULL;
}
