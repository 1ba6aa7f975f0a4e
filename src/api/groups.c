/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions for groups, whose members natra_attach and natra_configure make. */
#include "state/group_set.h"

#include <errno.h>
#include <string.h>

#include "api/structs.h"
#include "policy/group_check.h"
#include "util/cleanup.h"
#include "../../bpf/natra_groups.h"

static int check_name(struct natra *n, const char *name)
{
	if (!begin_call(n))
		return -EINVAL;
	return with_field(n, group_check_name("name", name, error_room(n),
					      HANDLE_ERROR_MAX));
}

int natra_group_set(struct natra *n, const struct natra_group_info *group)
{
	struct natra_group_info g;
	int r;

	if (!begin_call(n))
		return -EINVAL;
	r = group_in(n, "group", group, &g);
	if (r == 0)
		r = with_field(
			n, group_check(&g, error_room(n), HANDLE_ERROR_MAX));
	if (r < 0)
		return r;
	{
		cleanup_groups struct groups groups = GROUPS_INIT;

		r = groups_open(n, true, &groups);
		if (r == 0)
			r = group_set(n, &groups, g.name, &g);
	}
	if (r < 0)
		groups_sweep(n);
	return finish(n, r);
}

static int remove_group(struct natra *n, const char *name)
{
	cleanup_free struct groups_members *members = NULL;
	cleanup_groups struct groups groups = GROUPS_INIT;
	uint32_t number;
	int r = groups_open(n, false, &groups);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	number = groups_find(&groups, name, false);
	if (!number)
		return 0;
	if (groups_is_parent(&groups, number))
		return refuse(n, -EBUSY, "group '%s' is a parent of groups",
			      name);
	r = groups_list_members(n, NULL, NULL, &members);
	if (r < 0)
		return r;
	if (members[number].count)
		return refuse(n, -EBUSY, "group '%s' has members: '%s'", name,
			      members[number].id);
	if (members->count)
		return refuse(
			n, -EBUSY,
			"group '%s' may have a member: the record of '%s' cannot be read",
			name, members->id);
	groups_clear(&groups, number);
	return 1;
}

int natra_group_remove(struct natra *n, const char *name)
{
	int r = check_name(n, name);

	if (r == 0)
		r = remove_group(n, name);
	if (r >= 0)
		groups_sweep(n);
	return finish(n, r);
}

static struct natra_count count_of(const struct natra_tally *tally)
{
	return (struct natra_count){tally->packets, tally->bytes};
}

static int call(struct natra *n, const struct groups *groups, uint32_t number,
		const struct groups_members *members, natra_group_fn fn,
		void *arg)
{
	const struct natra_group *ingress =
		&groups->map[natra_group_place(number, false) - 1];
	const struct natra_group_given *given = &ingress->given;
	const struct natra_group_info info = {
		.sz = sizeof(info),
		.name = given->name,
		.ingress_rate_bits_per_sec = given->rate_bits_per_sec[0],
		.egress_rate_bits_per_sec = given->rate_bits_per_sec[1],
		.ingress_burst_bits = given->burst_bits[0],
		.egress_burst_bits = given->burst_bits[1],
		.parent = given->parent
				  ? groups_given(groups, given->parent)->name
				  : NULL,
		.floor_bits_per_sec = given->floor_bits_per_sec,
		.weight = given->weight,
		.members = members[number].count,
		.automatic = given->automatic != 0,
		.ingress_charged = count_of(&ingress[0].charged),
		.egress_charged = count_of(&ingress[1].charged),
		.over_limit_time_ns = {ingress[0].over.over_ns,
				       ingress[1].over.over_ns},
		.over_limit_percent = {ingress[0].over.percent,
				       ingress[1].over.percent},
		.free_bytes = {ingress[0].over.uncharged,
			       ingress[1].over.uncharged},
	};

	forget_error(n);
	return fn(arg, &info);
}

/* Copies the groups, because fn may call functions that lock them. The caller frees
 * both, also after an error. */
static int copy_groups(struct natra *n, struct natra_group **ret_map,
		       struct groups_members **ret_members)
{
	const size_t size = 2 * NATRA_GROUPS * sizeof(**ret_map);
	cleanup_groups struct groups groups = GROUPS_INIT;
	int r = groups_open(n, false, &groups);

	if (r < 0)
		return r;
	*ret_map = malloc(size);
	if (!*ret_map)
		return fail_errno(n, -ENOMEM, "read the groups");
	memcpy(*ret_map, groups.map, size);
	return groups_list_members(n, NULL, NULL, ret_members);
}

int natra_foreach_group(struct natra *n, natra_group_fn fn, void *arg)
{
	cleanup_free struct groups_members *members = NULL;
	cleanup_free struct natra_group *map = NULL;
	struct groups groups = GROUPS_INIT;
	int r;

	if (!begin_call(n))
		return -EINVAL;
	if (!fn)
		return refuse(n, -EINVAL, "fn: missing");
	r = copy_groups(n, &map, &members);
	if (r < 0)
		return r == -ENOENT ? finish(n, 0) : r;
	groups.map = map;
	for (uint32_t i = 1; i <= NATRA_GROUPS && r == 0; i++) {
		if (groups_given(&groups, i)->name[0])
			r = call(n, &groups, i, members, fn, arg);
	}
	return finish_walk(n, r);
}
