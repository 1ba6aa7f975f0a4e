/* SPDX-License-Identifier: BSD-2-Clause */
#include "hold.h"

#include <stdio.h>
#include <string.h>

#include "../../src/policy/mode.h"
#include "group.h"

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

/* The pacer alone charges the group, and the backstop behind it the pod's own limits. */
static bool paces_for_group(const struct natra_info *info)
{
	return info->pace_active && info->policy.group[0];
}

bool hold_may_lose(const struct natra_info *info)
{
	return mode_is_hostside(info->mode) || paces_for_group(info);
}

void hold_read_group(struct hold *hold, struct natra *n)
{
	const struct natra_policy *policy = &hold->info->policy;
	struct group_found own = {0}, parent = {0};
	int r;

	if (!paces_for_group(hold->info))
		return;
	r = group_find(n, policy->group, policy->group_is_automatic, &own);
	if (r > 0 && !own.info.ingress_rate_bits_per_sec && own.info.parent)
		r = group_find(n, own.parent, false, &parent);
	hold->group_limits_ingress = r < 0 ||
				     own.info.ingress_rate_bits_per_sec ||
				     parent.info.ingress_rate_bits_per_sec;
}

int hold_note(void *arg, const struct natra_neighbour *e)
{
	struct hold *hold = arg;
	const bool is_tcx = strcmp(e->hook, "tcx") == 0;
	const bool by_filters =
		hold->info->mode == NATRA_ATTACH_MODE_CLSACT_HOSTSIDE;
	const enum owner owner = owner_of(e);
	bool in = false, out = false, shaky = false;

	if (!e->is_on_host || e->is_ours || owner == OWNERS)
		return 0;
	in = owner != AWS &&
	     (mode_is_hostside(hold->info->mode) || hold->group_limits_ingress);
	out = owner != AWS && is_tcx && by_filters;
	shaky = by_filters && (owner == AWS || (owner == CILIUM && !is_tcx));
	if (in || out || shaky)
		note_owner(hold, owner, e);
	hold->is_lost[NATRA_DIRECTION_INGRESS] |= in;
	hold->is_lost[NATRA_DIRECTION_EGRESS] |= out;
	hold->is_shaky |= shaky;
	return 0;
}

bool hold_lost(const struct hold *hold, struct hold_loss *ret_loss)
{
	const struct natra_info *info = hold->info;
	const bool in = hold->is_lost[NATRA_DIRECTION_INGRESS] &&
			(info->ingress_prog_id || info->host_prog_id);
	const bool out =
		hold->is_lost[NATRA_DIRECTION_EGRESS] && info->egress_prog_id;

	if (mode_is_hostside(info->mode))
		*ret_loss = (struct hold_loss){
			"attachMode", natra_attach_mode_name(info->mode),
			in && out ? "ingress and egress"
			: in      ? "ingress"
				  : "egress",
			"the podside modes do"};
	else
		*ret_loss = (struct hold_loss){"ingressMode", "pace",
					       "ingress of the pod's group",
					       "police does"};
	return in || out;
}
