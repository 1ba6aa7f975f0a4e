/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions for groups, whose members natra_attach and natra_configure make. */
#include "state/group_map.h"

#include <errno.h>
#include <string.h>

#include "api/structs.h"
#include "policy/group_limits.h"
#include "util/cleanup.h"
#include "util/str.h"
#include "../../bpf/natra_groups.h"

static int check_name(struct natra *n, const char *name)
{
	if (!n)
		return -EINVAL;
	return group_check_name("name", name, error_room(n), HANDLE_ERROR_MAX);
}

/* Reads the caller's struct, of which what is only reported is ignored. */
static int group_in(struct natra *n, const struct natra_group_info *group,
		    struct natra_group_info *ret)
{
	int r;

	if (!n)
		return -EINVAL;
	r = struct_in(n, "group", ret, FIRST_GROUP, sizeof(*ret), group);
	return r < 0 ? r : group_check(ret, error_room(n), HANDLE_ERROR_MAX);
}

/* Returns whether the group is another one's parent. */
static bool has_children(const struct groups *groups, uint32_t number)
{
	for (uint32_t i = 1; i <= NATRA_GROUPS; i++) {
		const struct natra_group_given *given = groups_given(groups, i);

		if (given->name[0] && given->parent == number)
			return true;
	}
	return false;
}

/* Finds the parent of the group `number`, which is 0 for one that is to be made. */
static int find_parent(struct natra *n, const struct groups *groups,
		       const struct natra_group_info *group, uint32_t number,
		       uint32_t *ret_parent)
{
	uint32_t parent;

	*ret_parent = 0;
	if (!group->parent)
		return 0;
	parent = groups_find(groups, group->parent);
	if (strcmp(group->parent, group->name) == 0)
		return refuse(n, -ELOOP, "parent: '%s' is the group itself",
			      group->parent);
	if (!parent)
		return with_code(n, NATRA_CODE_NO_GROUP,
				 refuse(n, -ENOENT,
					"parent: there is no group '%s'",
					group->parent));
	if (groups_given(groups, parent)->parent)
		return refuse(n, -ELOOP, "parent: '%s' has a parent itself",
			      group->parent);
	if (number && has_children(groups, number))
		return refuse(n, -ELOOP,
			      "parent: '%s' is the parent of other groups",
			      group->name);
	*ret_parent = parent;
	return 0;
}

static struct natra_group_given given_of(const struct natra_group_info *group,
					 uint32_t parent)
{
	struct natra_group_given given = {
		.rate_bits_per_sec = {group->ingress_rate_bits_per_sec,
				      group->egress_rate_bits_per_sec},
		.burst_bits = {group->ingress_burst_bits,
			       group->egress_burst_bits},
		.floor_bits_per_sec = group->floor_bits_per_sec,
		.weight = group->weight,
		.parent = parent,
		.automatic = group->automatic,
	};

	(void)str_copy(given.name, sizeof(given.name), group->name);
	return given;
}

/* Checks the floors in a group, and those in its parent. */
static int check_floors(struct natra *n, const struct groups *groups,
			uint32_t number)
{
	const struct natra_group_given *given = groups_given(groups, number);
	int r = groups_check_floors(n, groups, number);

	if (r == 0 && given->parent)
		r = groups_check_floors(n, groups, given->parent);
	return r;
}

static int copy_map(struct natra *n, const struct groups *groups,
		    struct natra_group **ret_map)
{
	const size_t size = 2 * NATRA_GROUPS * sizeof(**ret_map);

	*ret_map = malloc(size);
	if (!*ret_map)
		return fail_errno(n, -ENOMEM, "read the groups");
	memcpy(*ret_map, groups->map, size);
	return 0;
}

/* Writes what the group shall be, or nothing. It is checked in a copy: a process that is
 * killed while it checks leaves nothing that would be refused. */
static int write_group(struct natra *n, const struct groups *groups,
		       uint32_t number, const struct natra_group_given *given)
{
	cleanup_free struct natra_group *map = NULL;
	struct groups changed = GROUPS_INIT;
	int r = copy_map(n, groups, &map);

	if (r < 0)
		return r;
	changed.map = map;
	*groups_given(&changed, number) = *given;
	r = check_floors(n, &changed, number);
	if (r < 0)
		return r;
	*groups_given(groups, number) = *given;
	groups_write_limits(groups);
	return 0;
}

static int set_group(struct natra *n, const struct groups *groups,
		     const struct natra_group_info *group)
{
	uint32_t number = groups_find(groups, group->name), parent;
	struct natra_group_given given;
	int r = find_parent(n, groups, group, number, &parent);

	if (r < 0)
		return r;
	given = given_of(group, parent);
	if (!number) {
		number = groups_find_free(groups);
		if (!number)
			return refuse(n, -ENOSPC, "there are %d groups already",
				      NATRA_GROUPS_MAX);
		groups_clear(groups, number);
	}
	return write_group(n, groups, number, &given);
}

int natra_group_set(struct natra *n, const struct natra_group_info *group)
{
	struct natra_group_info g;
	int r = group_in(n, group, &g);

	if (r < 0)
		return r;
	{
		cleanup_groups struct groups groups = GROUPS_INIT;

		r = groups_open(n, true, &groups);
		if (r == 0)
			r = set_group(n, &groups, &g);
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
	number = groups_find(&groups, name);
	if (!number)
		return 0;
	if (has_children(&groups, number))
		return refuse(n, -EBUSY, "group '%s' is a parent of groups",
			      name);
	r = groups_list_members(n, NULL, &members);
	if (r < 0)
		return r;
	if (members[number].count)
		return refuse(n, -EBUSY, "group '%s' has members: '%s'", name,
			      members[number].id);
	groups_clear(&groups, number);
	return 0;
}

int natra_group_remove(struct natra *n, const char *name)
{
	int r = check_name(n, name);

	if (r == 0)
		r = remove_group(n, name);
	if (r == 0)
		groups_sweep(n);
	return finish(n, r);
}

int natra_find_group(struct natra *n, const char *name, uint32_t *ret_number)
{
	cleanup_groups struct groups groups = GROUPS_INIT;
	uint32_t number = 0;
	int r = check_name(n, name);

	if (r < 0)
		return r;
	if (!ret_number)
		return refuse(n, -EINVAL, "ret_number: missing");
	r = groups_open(n, false, &groups);
	if (r == 0)
		number = groups_find(&groups, name);
	if (r < 0 && r != -ENOENT)
		return r;
	if (!number)
		return with_code(
			n, NATRA_CODE_NO_GROUP,
			refuse(n, -ENOENT, "there is no group '%s'", name));
	*ret_number = number;
	return finish(n, 0);
}

static struct natra_count count_of(const struct natra_tally *tally)
{
	return (struct natra_count){tally->packets, tally->bytes};
}

static int call(const struct groups *groups, uint32_t number,
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
		.number = number,
		.members = members[number].count,
		.automatic = given->automatic == 1,
		.ingress_charged = count_of(&ingress[0].charged),
		.egress_charged = count_of(&ingress[1].charged),
	};

	return fn(arg, &info);
}

/* Copies the groups, because fn may call functions that lock them. The caller frees
 * both, also after an error. */
static int copy_groups(struct natra *n, struct natra_group **ret_map,
		       struct groups_members **ret_members)
{
	cleanup_groups struct groups groups = GROUPS_INIT;
	int r = groups_open(n, false, &groups);

	if (r < 0)
		return r;
	r = copy_map(n, &groups, ret_map);
	return r < 0 ? r : groups_list_members(n, NULL, ret_members);
}

int natra_foreach_group(struct natra *n, natra_group_fn fn, void *arg)
{
	cleanup_free struct groups_members *members = NULL;
	cleanup_free struct natra_group *map = NULL;
	struct groups groups = GROUPS_INIT;
	int r;

	if (!n)
		return -EINVAL;
	if (!fn)
		return refuse(n, -EINVAL, "fn: missing");
	r = copy_groups(n, &map, &members);
	if (r < 0)
		return r == -ENOENT ? finish(n, 0) : r;
	groups.map = map;
	for (uint32_t i = 1; i <= NATRA_GROUPS && r == 0; i++) {
		if (groups_given(&groups, i)->name[0])
			r = call(&groups, i, members, fn, arg);
	}
	return r == 0 ? finish(n, 0) : r;
}
